/*
 * Is a plan still true? Cached plans and warm sandboxes were made some time ago; this is the one place that looks again, right before a
 * command starts.
 */
#pragma once

#include "lib/launch-file.h"

/* Is on disk still what the plan was made from? Yes for a file without guard entries. */
int is_fresh(const struct launchfile *plan);

/*
 * May a sandbox built from `own` run a command that was planned as `wanted`? Both must be fresh, and where `wanted` says of what a sandbox
 * is to be built, and for which caller, that must be the same in `own`, byte by byte.
 */
int serves(const struct launchfile *own, const struct launchfile *wanted);
