/*
 * A plan that serves every directory: the caller's directory is a slot in it, and so is each one that the command line names as the source
 * of a zone, with a target. They are filled in when a run has them.
 *
 * Node plans once for a command line and leaves the plan with slots (src/launch-cache/any-directory.ts), together with what must hold
 * of a directory for its own plan to be the same one. Here that is looked at. A directory that does not fit has its own plan.
 *
 * A slot is the byte PLACE_SLOT, the number of the directory (0: the caller's, then those of zones in the order of their targets), and one
 * letter: p the path, d and i device and inode. With the number 0, h is the hash of the plan (16 digits) and n the name of its pool. The
 * filled plan has its own seal.
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

/* The directories of one run. */
struct places {
  struct place place[1 + PLACE_ZONES_MAX];
  size_t count;
};

/* The directory that this process is in, as the first one. Returns NULL, or why no plan for any directory can serve it. */
const char *places_begin(struct places *places);
/* One more, by its path of `length` bytes. Returns NULL, or why no plan for any directory can serve it. */
const char *places_add(struct places *places, const char *path, size_t length);

/* As words, each ended by NUL, for another process. Returns their size. */
#define PLACES_BYTES_MAX ((1 + PLACE_ZONES_MAX) * (PATH_MAX + 4 * 24))
size_t places_write(const struct places *places, char bytes[static PLACES_BYTES_MAX]);
/* -1: they are not that. */
int places_read(struct places *places, const char *bytes, size_t size);

/* The directory of a blank zone; NULL where there is none of that number. */
const struct place *place_of(const struct places *places, const struct entry *zone);

/*
 * Why the plan does not fit the directories, for people, or NULL where it does. `program`: the first word of the command, or NULL. The text
 * is valid until the next call.
 */
const char *places_unfit(const struct places *places, const struct launchfile *plan, const char *program);

/* Fills the slots. `filled` is as launchfile_check leaves it, and never freed. Returns 0, or -1 with errno. */
int places_fill(const struct places *places, const struct launchfile *plan, struct launchfile *filled);
