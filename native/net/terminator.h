/*
 * Connections that do not end where they lead: of hosts to whose requests something is added, or whose requests are limited. The
 * terminator (src/terminator/main.ts) is a process of node's, started by the runner; this one judges and dials as always, then gives it
 * the connection that was made and one end of a pair in the place of the command's. So it reaches nothing but what was checked here, and
 * what the command sends and gets is counted as elsewhere.
 *
 * Its channel is the one on which node takes descriptors: a line of JSON with one descriptor, in the form in which node's own
 * processes exchange sockets (NODE_HANDLE in lib/internal/child_process.js). The terminator's answers say nothing.
 */
#pragma once

#include "lib/launch-file.h"
#include "net/hosts.h"

#include <stdint.h>

/* The hosts and ports (V_NET_TERMINATE). -1 with errno. */
int terminator_read(const struct launchfile *file);
/* Takes the channel where there are such hosts, and closes it elsewhere. -1 with errno. */
int terminator_on(int fd);
/* `host` may be NULL: then the address is the host. */
int terminator_serves(const struct host *host, uint16_t port);
/* Passes on `outside`, a connection to the host, which stays the caller's, and returns the end that replaces it from now on. -1: it is gone,
 * or does not keep up. */
int terminator_take(const struct host *host, uint16_t port, int outside);
