/* Where a client of the proxy wants to go, from its own text: a name in canonical form or an address, and a port. Pure. */
#pragma once

#include "net/address.h"
#include "net/host-name.h"

struct target {
  int is_name;
  char name[HOST_NAME_BYTES]; /* where it is a name */
  struct address address;     /* where it is not */
  uint16_t port;
};

/* A name, an IPv4 address in its usual spelling, or an IPv6 address ([...] around it where `is_bracketed`). -1 for anything else. */
int target_read_host(const char *text, size_t size, int is_bracketed, struct target *target);
/* `host:port`; without a port `otherwise`, where 0 means that there must be one. */
int target_read(const char *text, size_t size, uint16_t otherwise, struct target *target);

#define TARGET_TEXT_MAX (HOST_NAME_BYTES + 8)
/* As it stands in a URL; the port is left out where it is `usual`. */
void target_print(const struct target *target, uint16_t usual, char text[TARGET_TEXT_MAX]);
