/*
 * The walls around the helper, which reads the input of a hostile command and has the host's network: a separate id where root
 * called, no capabilities, no_new_privs, only its own descriptors, files only as the resolver needs them (Landlock), a list of system
 * calls (seccomp: any other ends it), and bounds on memory, files and descriptors.
 */
#pragma once

#include <sys/types.h>

#define CONNECTIONS_MAX 4096  /* two descriptors each */
#define OTHER_DESCRIPTORS 800 /* stock, listeners, resolver, clients of the name server, of the proxy and of the owner, held connections */

/* `id`: to be taken, 0 = the caller's own. Failures end the process with a report. Returns how many connections there may be, at most
 * CONNECTIONS_MAX: fewer, or none, where the caller's limit of descriptors is low. */
unsigned confine(uid_t id);
