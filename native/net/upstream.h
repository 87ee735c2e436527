/*
 * The operator's own proxy (V_NET_UPSTREAM), through which hosts are reached where a network lets nothing out directly: a tunnel by name
 * (CONNECT), after the judgement about the name and, where this host can resolve it, about its addresses. Hosts of V_NET_DIRECT, listed
 * addresses and names whose address is in the plan are dialled directly. What the proxy answers is not trusted: a status of success within
 * UPSTREAM_HEAD_MAX bytes, or no connection.
 */
#pragma once

#include "lib/launch-file.h"
#include "net/hosts.h"

#include <stdint.h>

#define UPSTREAM_HEAD_MAX 8192

/* -1 with errno. */
int upstream_read(const struct launchfile *file);
/* Port 0: on any port. */
int upstream_serves(const struct host *host, uint16_t port);
/* Of the proxy itself: in no table, and never released. */
struct host *upstream_host(void);
uint16_t upstream_port(void);

/* The answer so far. */
struct upstream_answer {
  char start[12]; /* HTTP/1.1 200 */
  unsigned size, matched; /* bytes of the head; of its end */
};
/* Asks for the tunnel, on a new connection. -1: it is none. */
int upstream_ask(int fd, const struct host *host, uint16_t port);
/* 1 = the tunnel is there, and all that can be read comes from the host; 0 = not yet; -1 = there will be none. */
int upstream_hear(int fd, struct upstream_answer *answer);
