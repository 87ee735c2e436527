/*
 * The client's side of a warm sandbox: finds one that is exactly what the cold way would build now, and gives it the command.
 *
 * Theory of operation. A cached launch file that may be served by a pool names the pool's directory. There lies the launch file
 * from which the sandboxes were built. It must be the caller's own, byte by byte, or have the same caller, the same plan, and
 * every input on disk still as it was. Then a ready socket is claimed by renaming it, and the command handed over with a gate
 * before it. While the sandbox wakes up, every place that the caller's plan looked at is looked at again; then the gate is opened.
 * Whatever goes wrong before that, or before FRAME_TAKEN, costs nothing: the cold start is always possible.
 * After both there is no second run, unless the sandbox says FRAME_REFUSED, or has ended with the gate still to be gone through.
 */
#pragma once

#include "lib/launch-cache.h"
#include "client/capture.h"

enum claim {
  CLAIM_NONE, /* no command was handed over */
  CLAIM_DONE, /* exit_code and json tell the end */
  CLAIM_LOST, /* the sandbox took the command and was killed: its end is unknown */
};

struct claimant {
  const struct launchfile *file;
  char **command, **env;
  int signals; /* signalfd: what comes is passed on */
  struct capture *capture;
};

/* Runs a command in a warm sandbox, if the paths of the file (V_AT) are unchanged; json has room for `room` bytes. */
enum claim claim_run(const struct claimant *claimant, int *exit_code, char *json, size_t room);

/*
 * The same by a launch of our own, a child at the other end of the socket `launch`, which is closed. CLAIM_LOST: its end is unknown.
 */
enum claim run_by(int launch, const struct claimant *claimant, int *exit_code, char *json, size_t room);
