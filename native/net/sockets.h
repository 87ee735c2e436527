/* Steps with the sockets of connections. */
#pragma once

#include <sys/types.h>

/* The next connection of a listener, non-blocking; -1 without one. Where descriptors or memory are short the listener stays ready, so a
 * moment is waited for. */
int socket_accept(int listener);
/* Whether recv had nothing to give yet. */
int is_not_yet(ssize_t got);
/* From now on small messages leave at once. Where that cannot be had they are late, not wrong. */
void socket_hurry(int fd);
/* The other end gets a reset when it is closed, and not the end of file of a complete stream. */
void socket_reset_at_end(int fd);
void socket_reset(int fd);
