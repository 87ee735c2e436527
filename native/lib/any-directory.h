/*
 * A plan that serves every directory: the caller's directory is a slot in it, and is filled in when a run has it.
 *
 * Node plans once for a command line and leaves the plan with slots (src/launch-cache/any-directory.ts), together with what must hold
 * of a directory for its own plan to be the same one. Here that is looked at. A directory that does not fit has a plan of its own.
 *
 * A slot is the byte PLACE_SLOT and one letter: p the path, d and i device and inode, h the hash of the plan (16 digits), n the name of
 * its pool. The filled plan has a seal of its own.
 */
#pragma once

#include "lib/launch-file.h"

#include <limits.h>
#include <sys/stat.h>

/* A directory of the host. */
struct place {
  char path[PATH_MAX]; /* canonical */
  struct stat status;
};

/* The directory that this process is in. Returns NULL, or why no plan for any directory can serve it. */
const char *place_here(struct place *place);

/* Whether the plan has slots. */
int has_slots(const struct launchfile *plan);

/*
 * Why the plan does not fit the directory, for people, or NULL where it does. `program`: the first word of the command, or NULL. The text
 * is valid until the next call.
 */
const char *place_unfit(const struct place *place, const struct launchfile *plan, const char *program);

/* Fills the slots. `filled` is as launchfile_check leaves it, and never freed. Returns 0, or -1 with errno. */
int place_fill(const struct place *place, const struct launchfile *plan, struct launchfile *filled);
