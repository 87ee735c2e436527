/* Copy-on-write zones: an overlay of the zone's tree, which stays read-only, and a directory of the run's layer (lib/layer.h). */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

/* Opens DIRECTORY/ID again, which `layer` is in another mount namespace: what is cloned has to be a mount of our own. */
int overlay_open_layer(int layer, const char *directory, const char *id);

/* Makes the directories of the N-th zone in the layer. The new root looks like that of the zone. Returns zone.N, detached as a separate
 * mount; failures of all of these end the process with a report. */
int overlay_make_upper(int layer, size_t number, const struct stat *zone, const char *path);

/* The copy of the N-th zone, which the launcher has made. */
int overlay_open_copy(int layer, size_t number, const char *path);

struct overlay {
  int lower, upper;  /* detached trees: the zone, and what overlay_make_upper gave */
  int is_privileged; /* root, no user namespace of our own */
  uid_t uid;         /* the sandbox's, as the two trees show it */
  gid_t gid;
  const char *path; /* for reports */
};

/* The mount that takes the place of `lower`. Both trees are closed. */
int overlay_mount(const struct overlay *overlay);
