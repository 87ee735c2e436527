/*
 * Is a plan still true? Cached plans and warm sandboxes were made some time ago; this is the one place that looks again, right before a
 * command starts.
 */
#pragma once

#include "lib/launch-file.h"

/* Is on disk still what the plan was made from? Yes for a file without guard entries. */
int is_fresh(const struct launchfile *plan);

/*
 * Looks that are made while a client that has begun is still preparing its command. Those that are not made by then are made
 * afterwards. When the command is late all are made again: what is seen must be the disk on which the command starts.
 */
struct looks {
  uint64_t begun_ns; /* CLOCK_MONOTONIC; 0 = there was none yet */
  size_t position;   /* up to which the entries of the plan have been looked at */
  int has_failed;
};

/* So long what was seen is taken to be still there: many times what a client needs from its claim to its command. */
#define LOOKS_HOLD_NS 5000000ull

/* At what a sandbox was built from, and at what its client has planned. */
struct looks_ahead {
  struct looks own, wanted;
};

int looks_are_left(const struct looks *looks, const struct launchfile *plan);
/* All have been made since then, by another process; 0 = by none. */
void looks_were_made(struct looks *looks, const struct launchfile *plan, uint64_t since_ns);
/* Makes the next few. */
void look_ahead(struct looks *looks, const struct launchfile *plan);

/*
 * May a sandbox built from `own` run a command that was planned as `wanted`? Both must be fresh, and where `wanted` says of what a sandbox
 * is to be built, and for which caller, that must be the same in `own`, byte by byte.
 */
int serves(const struct launchfile *own, const struct launchfile *wanted, const struct looks_ahead *ahead);
