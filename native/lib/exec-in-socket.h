/*
 * The socket by which the user of a living sandbox has another command run in it: `in`, in the directory that `serve` of its launch file
 * names and that only this user can enter. A request is one datagram: struct request with `exec_in` set, and EXEC_IN_DESCRIPTORS
 * descriptors (lib/init-protocol.h). The variables of its command block are added to those of the run.
 */
#pragma once

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Through the descriptor of the directory: an address has room for 107 bytes only. */
static inline struct sockaddr_un exec_in_address(int directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/in", directory);
  return address;
}
