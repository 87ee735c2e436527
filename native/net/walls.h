/*
 * The walls around the helper, which reads what a hostile command sends and stands on the host's network: an id of its own where root
 * called, no capabilities, no_new_privs, no descriptors but its own, files only as the resolver needs them (Landlock), a list of system
 * calls (seccomp: anything else ends it), and bounds on memory, files and descriptors.
 */
#pragma once

#include <sys/types.h>

#define CONNECTIONS_MAX 4096  /* two descriptors each */
#define OTHER_DESCRIPTORS 800 /* stock, listeners, resolver, clients of the name server, of the proxy and of the owner, held connections */

/* `id`: to be taken, 0 = the caller's own. Failures end the process with a report. Returns how many connections there may be, at most
 * CONNECTIONS_MAX: fewer, or none, where the caller's limit of descriptors is low. */
unsigned confine(uid_t id);
