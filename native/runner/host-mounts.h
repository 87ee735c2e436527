/* The mounts of the host that a sandbox shows: those at, above or below the paths that its launch file takes from the host. */
#pragma once

#include "lib/launch-file.h"
#include "lib/loop.h"

struct mounts {
  struct source list; /* mountinfo of this process, which also tells by poll that something has changed; closed = not watched */
  const struct launchfile *file;
  const char *init;
  char *seen; /* the lines that concern us; while it is not known which do, of a plan with slots, all */
  size_t seen_size;
  int is_all;
  int has_moved; /* something that did not concern us */
};

#define MOUNTS_NONE {.list = SOURCE_NONE}

/* Notes what there is now. `file` and `init`, the path of the program that every sandbox shows, must outlive the watch.
 * 0, or -1 with errno. */
int mounts_watch(struct mounts *mounts, const struct launchfile *file, const char *init);

/* After poll has said POLLPRI: is something of it ours? What cannot be read counts as ours. */
int mounts_have_changed(struct mounts *mounts);
/* Is something mounted below `path`? 1 with the first mount point, 0, or -1 with errno. */
int mounts_below(const char *path, char *point, size_t room);
/* Asks poll, too. */
int mounts_are_stale(struct mounts *mounts);
