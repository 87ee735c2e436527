/*
 * The audit log of a run with an ordinary end: its line (client/result.h), appended as src/report/audit-file.ts does it: under the lock, in one chain. It is opened before the run and written through that
 * descriptor. Node handles all other cases: a lock that stays taken, a path that is not a file, a full disk.
 */
#pragma once

#include "client/result.h"

/* Room that a line may need, and what a byte of the command takes at most (\u0000). As src/report/audit-file.ts has them. */
#define AUDIT_ROOM (64 << 10)
#define AUDIT_ROOM_PER_BYTE 6

/* 0: the run may begin, also where none is to be recorded. -1: node says what is wrong with the log. */
int audit_open(const struct launchfile *file, char *const *command);

/* Is the run to be recorded? */
int audit_is_on(const struct launchfile *file);

/* 0, or -1 when the line was not written. */
int audit_append(const struct result *result);

/* Leaves the descriptors of log and lock to node, which writes the line: their numbers, or nothing where none is open. */
int audit_hand_over(char *text, size_t room);
