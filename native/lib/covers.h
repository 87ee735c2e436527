/*
 * The covers that the guard has found, on their way to the stager. Launch walks the writable zones while the stager, which it has
 * cloned before, makes everything else: in a large zone, and for root in any, the walk takes as long as half a sandbox.
 */
#pragma once

#include "lib/guard.h"

/* Whether there is a writable zone, or one in which something is hidden, and so something to send. Both sides ask the same file. */
int covers_are_sent(const struct launchfile *file);

/* All of the guard's, in sealed memory. 0, or -1 with errno: EPIPE and ECONNRESET when the stager is gone. */
int covers_send(int socket, const struct guard *guard);

/* Waits for them; `guard` gets zones with a target and covers, in memory that is never given back. 0, or -1 with errno. */
int covers_receive(int socket, struct guard *guard);
