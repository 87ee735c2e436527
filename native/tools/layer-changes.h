/*
 * The changes of a layer to its zones: the upper directory, compared with the zone as it is now.
 *
 * Theory of operation. Only the upper directory is walked, with one look at the zone for each entry. Everything is reached by
 * descriptors from the two roots, no link is followed and no file system is left. The marks of overlay - a character device 0:0 for
 * what was removed, xattrs for directories that hide or come from another one - are its own: a command can neither make such a device
 * nor set trusted.*, and user.overlay.* of a command is stored under another name. Paths are relative to the zone, "." is its root.
 */
#pragma once

#include "lib/layer.h"

#include "tools/layer-notes.h"

#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

/* Most of the stack that the main thread can get without a new start of the program: the kernel leaves 128 MiB of room for it. */
#define STACK_MOST (112u << 20)

struct layer_zone {
  const char *source;
  int is_copied; /* upper has all of it */
  int lower, upper;
  struct stat root; /* of the zone */
  struct timespec since;
};

struct layer {
  const char *id;
  int fd; /* locked */
  struct launchfile record;
  struct layer_zone *zone;
  size_t zones;
  struct notes notes;
  const char *const *holder; /* directories for layers of this user: absolute paths */
  size_t holders;
};

enum change_kind { ADDED, MODIFIED, DELETED, RENAMED, MODE, SYMLINK, TYPE, KEPT, GIT, NEW_GIT };

struct change {
  enum change_kind kind;
  size_t zone;
  const char *path;
  int directory;       /* where its content is; of DELETED, where it was */
  const char *name;
  struct stat now;     /* of DELETED: as before */
  struct stat before;  /* st_mode 0 = the zone has nothing there */
  struct stat origin;  /* as before, but of what a renamed directory brought: where it was. st_mode 0 = the host never had it */
  int host;            /* the zone's directory that has the origin as `name`; -1 = none */
  int is_privileged;   /* a set-id program or one with capabilities, on the host or in the layer */
  int conflict;        /* the zone's has changed since the run began */
  int nested;          /* DELETED, in a directory that was */
  const char *other;   /* of a link its target, of RENAMED the path before, else "" */
};

/* Opens the zones of the record. 0, or -1 with errno and the path in `failed`: ESTALE = the zone was moved or replaced. */
int layer_open_zones(struct layer *layer, char failed[PATH_MAX]);

/*
 * Calls `report` for each change, parents first, until it returns something else than 0. KEPT only says what a renamed directory
 * brought along; GIT and NEW_GIT name a directory that git takes for a repository, or may take for one when it has all of the changes
 * (lib/repository.h). 0, what `report` returned, or -1 with errno and `failed`.
 */
typedef int change_report(void *data, const struct change *change);
int layer_changes(const struct layer *layer, change_report *report, void *data, char failed[PATH_MAX]);

/* Directories that a walk can go down with the stack that this process has; deeper is ENAMETOOLONG. */
size_t layer_deepest(void);
