/*
 * The client's side of a warm sandbox: finds one that is exactly what the cold way would build now, and gives it the command.
 *
 * Theory of operation. A cached launch file that may be served by a pool names the pool's directory. There a ready socket is claimed by
 * renaming it, and gets the plan and the command as soon as the client has them. The sandbox refuses a plan that it was not built from, or that is stale
 * (runner/freshness.h). Whatever goes wrong before it has said FRAME_TAKEN costs nothing: the cold start is always possible. After that
 * the command never runs a second time, unless the sandbox says FRAME_REFUSED, or was killed before its command went through the gate.
 */
#pragma once

#include "lib/any-directory.h"
#include "lib/launch-cache.h"
#include "client/capture.h"

enum claim {
  CLAIM_NONE, /* no command was handed over */
  CLAIM_DONE, /* json, the line of launch, tells the end */
  CLAIM_LOST, /* the sandbox took the command and was killed: its end is unknown */
};

struct claimant {
  const struct launchfile *file, *plan; /* as for claim_sandbox */
  char **command, **env;
  int signals; /* signalfd: what comes is passed on */
  int parent;  /* pidfd: its end is passed on as SIGTERM; -1 without */
  struct capture *capture;
};

struct sandbox {
  int socket;        /* -1 = there is none */
  int is_blank;      /* it has been told the directories */
  int has_same_plan; /* as far as its pool tells: it says so itself when it has been told which */
};

/*
 * Claims a warm sandbox that may serve the plan, and tells it that a command comes: it looks at what it must look at meanwhile. `plan`: before
 * its slots were filled for `places`; NULL where it had none.
 */
struct sandbox claim_sandbox(const struct launchfile *file, const struct launchfile *plan, const struct places *places);

/* The same before the slots are filled, if the pool of the plan serves every directory. */
struct sandbox claim_blank(const struct launchfile *plan, const struct places *places);
void give_up_sandbox(struct sandbox *sandbox);

/* Runs a command in a claimed sandbox, if it serves the plan; closes its socket; json has room for `room` bytes. */
enum claim run_claimed(const struct sandbox *sandbox, const struct claimant *claimant, char *json, size_t room);

/*
 * The same by a launch of our own, a child at the other end of the socket `launch`, which is closed. CLAIM_LOST: its end is unknown.
 */
enum claim run_by(int launch, const struct claimant *claimant, char *json, size_t room);
