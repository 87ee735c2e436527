/*
 * launch: runs one command in one sandbox and says what happened.
 *
 *   launch [--id ID] [--verify] [--framed output|all] [-- COMMAND [ARG...]]
 *   launch [--id ID] --warm DIRECTORY      a sandbox without a command, which a client brings (runner/run-protocol.h)
 *   launch --landlock-abi [GROUP]         its version, after `entered` when a process could be started in that cgroup
 *
 * Descriptors: 0-2 the command's own, 3 the launch file, 4 the status (optional), 5 the liveness pipe (optional), 6 the command's
 * words, each ended by NUL, when they are not on our argv. Its environment is the command's environment.
 * Framed, descriptor 4 is a connected socket that bears stdout, stderr, with `all` stdin, signals and the status (lib/frames.h), and its
 * end means that the caller is gone: a caller that captures has one descriptor to read, and the command has pipes, which can be opened
 * again as /dev/stdout.
 *
 * With --verify the run is refused where something has changed that the launch file says its plan was made from.
 *
 * The front-end, which has the plan in memory already, runs it in its own process instead: one program less to start, and to end.
 */
#pragma once

#include "lib/launch-file.h"

struct launch_call {
  const struct launchfile *file;
  char **command, **env;
  /* Gets the exit status and the line of JSON (lib/status.h) when nothing of the run is left; must not return. */
  void (*ended)(void *context, int status, const char *json);
  void *context;
};

/*
 * A run in the calling process, which must have no children and no threads, and 0, 1 and 2 open. Its other descriptors are closed,
 * its signals taken. Should it be killed, the sandbox ends with it, and the next launch removes what the record names.
 */
_Noreturn void launch_here(const struct launch_call *call);
