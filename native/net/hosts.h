/*
 * The names that a command may ask for, the stand-in address of each inside, and its addresses outside. A listed name has
 * its stand-in from the plan; a name below a wildcard gets one of the wildcard's when it is known to exist, and keeps it: no address is
 * ever used for a second name.
 */
#pragma once

#include "lib/launch-file.h"
#include "net/address.h"
#include "net/host-name.h"

#define HOST_ADDRESSES_MAX 16

enum host_state { HOST_UNKNOWN, HOST_ASKED, HOST_FOUND, HOST_ABSENT, HOST_FAILED };

struct host;
struct waiter {
  struct waiter *next;
  void (*resolved)(struct waiter *waiter, struct host *host);
};

struct host {
  struct host *next; /* of the same hash */
  char name[HOST_NAME_BYTES];
  struct wildcard *wildcard; /* NULL = listed itself */
  uint32_t stand_in;         /* IPv4 in host order, 0 = none yet */
  enum host_state state;
  uint64_t known_at; /* CLOCK_MONOTONIC */
  int is_planned;    /* the plan says where it leads: it is not looked up */
  const char *open_ports; /* on these its addresses need no rule of their own; NULL = on none */
  int count;
  struct address address[HOST_ADDRESSES_MAX];
  struct waiter *waiters;
};

/* -1 with errno. */
int hosts_read(const struct launchfile *file);
/* Makes what a wildcard covers; NULL where no stand-in is planned for the name, or there are too many. */
struct host *hosts_find(const char *name);
struct host *hosts_find_by_stand_in(uint32_t address);
/* This host by a port of the sandbox's loopback; NULL where no rule names it (src/network/listeners.ts). */
struct host *hosts_find_of_loopback(const struct address *address);
/* Gives a host that exists its stand-in, if it has none. -1 = all of its wildcard's are taken. */
int hosts_place(struct host *host);
/* Do the addresses of the host need no rule of their own on this port? Port 0: on some port. */
int host_is_open(const struct host *host, uint16_t port);
/* Forgets a host without a stand-in and without a waiting question. */
void hosts_release(struct host *host);
