/*
 * Standard streams that are files. A descriptor of a file gives a command more than its caller opened: by /proc/self/fd it is opened again
 * with other rights, and what belongs to the file and not to its content (mode, times, attributes, locks, leases) takes no right to
 * write at all. So the command gets none. It gets a pipe, and a process on the host (a relay) carries the bytes between both. A short
 * stdin is copied instead: the copy has a position, which becomes the caller's at the end.
 *
 * A stderr that is a pipe or a socket is carried, too, where its end is kept: only launch can say what a command that failed has met.
 */
#pragma once

#include "lib/status.h"

#include <sys/types.h>

struct stream_files {
  pid_t relay[3];   /* by stream; 0 = none */
  int stop[2];      /* a pipe whose end is the end of the relays, once they have carried what is there; -1 = none */
  int copy, source; /* of stdin, and the caller's; -1 = none */
  /* Set by the caller, before the streams are replaced. */
  int keeps_errors;
  int carries_sockets; /* a command cannot open one again */
  struct said *said; /* NULL = nothing is kept */
};

#define STREAM_FILES_NONE {.stop = {-1, -1}, .copy = -1, .source = -1}

/*
 * Puts something else in the place of each of the three that is a file. What it replaces is not closed. Returns 0, or -1 with errno and in
 * *which the stream that failed.
 */
int stream_files_replace(struct stream_files *files, int fds[3], int *which);
/* A child has ended. Returns the stream it has carried, or -1; *error is why it could not, or 0. */
int stream_files_on_end(struct stream_files *files, pid_t child, int status, int *error);
int stream_files_is_relay(const struct stream_files *files, pid_t child);
int stream_files_are_busy(const struct stream_files *files);
/* Later output is not the command's: another process inside may have opened its pipe, which then would never end. */
void stream_files_stop(struct stream_files *files);
/* When the command has ended. May be called more than once. */
void stream_files_finish(struct stream_files *files);
/* The end of stderr in hexadecimal, once no relay is busy; NULL where nothing was kept. Valid until the next call. */
const char *stream_files_said(const struct stream_files *files);
