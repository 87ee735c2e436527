/*
 * The restricted network of a container. The daemon gives it a network namespace with lo and nothing else, and our init (PID 1) root's id
 * and the capabilities that it takes to make the sockets of sandbox/network.c; a program on the host waits for them. Before the
 * command exists init gives up the id, every capability, and the protocol of netlink that it needed of the system call filter.
 */
#pragma once

#include "lib/status.h"

#include <sys/types.h>

struct container_network {
  const char *socket; /* of tools/container-net.c; NULL = the network is not restricted */
  uid_t uid;          /* of the command */
  gid_t gid;
};

/* Makes the network and becomes the command's user. Returns 0, or -1 with the reason in `outcome`. */
int container_network_make(const struct container_network *network, struct outcome *outcome);
