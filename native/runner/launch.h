/*
 * launch: runs one command in one sandbox and says what happened.
 *
 *   launch [--id ID] --streams own|output|all   one command, which its caller sends
 *   launch --fork-server DIRECTORY OWN          runs for one owner, one for each connection (runner/fork-server.h)
 *   launch --probe-host [GROUP]                 prints `entered` when a process could be started in that cgroup, then the Landlock version
 *
 * Descriptors: 3 the launch file; 4 the socket of the caller. The caller sends the frames FRAME_GUARDS (optional) and FRAME_RUN and gets
 * FRAME_STATUS, or FRAME_REFUSED where something has changed that its plan was made from (lib/frames.h); the end of the socket ends the
 * run. With `own` the command has the streams that come with FRAME_RUN, else launch's 0-2. With `output` its stdout and stderr are frames
 * (it writes to pipes, which can be opened again as /dev/stdout), with `all` its stdin, too.
 *
 * The client, which has the plan in memory already, runs it in its own process instead: one program less to start, and to end.
 */
#pragma once

#include "lib/launch-file.h"

struct launch_call {
  const struct launchfile *file;
  char **command, **env;
  int parent; /* pidfd of what started the caller, with which the run ends; -1 without */
  /* Gets the exit status and the line of JSON (lib/status.h) when nothing of the run is left; must not return. */
  void (*ended)(void *context, const char *json);
  void *context;
};

/*
 * A run in the calling process, which must have no children and no threads, and 0, 1 and 2 open. Its other descriptors but
 * `parent` are closed,
 * its signals taken. Should it be killed, the sandbox ends with it, and the next launch removes what the record names. Returns, before
 * anything is touched, when the plan is stale.
 */
void launch_here(const struct launch_call *call);

struct warm_call {
  const struct launchfile *file;
  const char *id, *directory; /* of the pool */
  int keeper; /* socket: gets bytes (runner/line.h) and, where the sandbox ends without a command, the line of JSON; its end ends the wait */
};

/* A sandbox without a command, which a client brings (runner/line.h), in a process that its keeper has just forked. */
_Noreturn void launch_warm(const struct warm_call *call);
