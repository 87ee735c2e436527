/*
 * The socket by which the user of a living sandbox has another command run in it: `<run id>.in` next to the record of the run, in a
 * directory that only this user can enter. A request is one datagram: struct request with `enter` set, and ENTER_DESCRIPTORS
 * descriptors (lib/init-protocol.h), of which the command block has no variables but TERM.
 */
#pragma once

#include "lib/run-record.h"

#include <sys/un.h>

/* Through the descriptor of the directory: an address has room for 107 bytes only. */
struct sockaddr_un entry_address(int records, const char *id);
/* Where it is left by a launcher that was killed, the janitor does this. */
void entry_remove(int records, const char *id);
