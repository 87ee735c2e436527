/* One message of a known size, and the descriptors that come with it (SCM_RIGHTS, unix(7)). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define MESSAGE_DESCRIPTORS_MAX 250

/* `count`: at most MESSAGE_DESCRIPTORS_MAX. Returns 0, or -1 with errno. */
int message_send(int socket, const void *bytes, size_t size, const int *fds, int count);

/* Returns what recvmsg does; `fds` has room for MESSAGE_DESCRIPTORS_MAX, and *count of them came, close-on-exec. */
ssize_t message_receive(int socket, void *bytes, size_t size, int flags, int *fds, int *count);

/* Names a socket in a directory through its descriptor: an address has room for 107 bytes only. "": the descriptor is that of the socket. */
struct sockaddr_un socket_address(int directory, const char *name);
/* A new socket of that type, connected to the one at `path`. -1 with errno. */
int socket_to(const char *path, int type);

/* Whether the process that has connected, or made the pair, or listens, is this user's. */
int peer_is_same_user(int socket);

/* All of `size` bytes of a stream, until `until` (CLOCK_MONOTONIC). Returns 0, or -1 where they did not come as a whole. */
int stream_receive(int socket, void *bytes, size_t size, uint64_t until);
