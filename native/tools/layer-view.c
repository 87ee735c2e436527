#include "tools/layer-view.h"

#include "lib/files.h"
#include "lib/layer-copy.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "tools/layer-changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VIEW "view"

struct view {
  const struct layer *layer;
  const struct zone_paths *chosen;
  int before, now; /* a, b */
  size_t renamed_zone; /* of the last renamed directory that was chosen */
  char *renamed;
};

static int is_brought(const struct view *view, const struct change *change) {
  size_t length = view->renamed ? strlen(view->renamed) : 0;
  return length && view->renamed_zone == change->zone && strncmp(view->renamed, change->path, length) == 0 && change->path[length] == '/';
}

/* In a directory that may be a link by now: what another change has put there is not followed. Closes `directory`. */
static int enter(int directory, const char *name) {
  int made = mkdirat(directory, name, 0700) == 0 || errno == EEXIST;
  return close_with(directory, made ? openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
}

/* The directory of a path, which is made with those above it where it is missing. Cuts the path at its slashes. */
static int make_parent(int root, char *path, const char **name) {
  int fd = open_parent_beneath(root, path, name);
  if (fd >= 0 || errno != ENOENT) return fd;
  fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
  for (char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
    *slash = 0;
    fd = enter(fd, path);
  }
  return fd;
}

/* Zones can have the same paths. NULL with errno; the caller frees it. */
static char *path_in_view(const struct view *view, const struct change *change) {
  char *path;
  if (view->layer->zones == 1) return strdup(change->path);
  return asprintf(&path, "%zu/%s", change->zone, change->path) < 0 ? NULL : path;
}

static int put(const struct view *view, int side, const struct change *change, int from, const char *name, const struct stat *status) {
  if (!S_ISREG(status->st_mode) && !S_ISLNK(status->st_mode)) return 0; /* a patch has no directories */
  const char *new_name;
  char *path = path_in_view(view, change);
  int to = path ? make_parent(side, path, &new_name) : -1;
  int done = close_with(to, to < 0 ? -1 : copy_to_read(from, name, status, to, new_name));
  free(path);
  return done;
}

static int put_before(struct view *view, const struct change *change) {
  const char *name;
  if (change->before.st_mode == 0 || change->kind == KEPT) return 0; /* what a renamed directory brought was not at this path */
  int from = open_parent_beneath(view->layer->zone[change->zone].lower, change->path, &name);
  return close_with(from, from < 0 ? -1 : put(view, view->before, change, from, name, &change->before));
}

static int note_renamed(struct view *view, const struct change *change) {
  free(view->renamed);
  view->renamed = strdup(change->path);
  view->renamed_zone = change->zone;
  return view->renamed ? 0 : -1;
}

static int on_change(void *data, const struct change *change) {
  struct view *view = data;
  if (change->kind == GIT || change->kind == NEW_GIT) return 0;
  if (change->kind == KEPT ? !is_brought(view, change) : !zone_paths_have(view->chosen, (struct zone_path){change->zone, change->path})) return 0;
  if (change->kind == RENAMED && note_renamed(view, change) < 0) return -1;
  if (change->kind != DELETED && put(view, view->now, change, change->directory, change->name, &change->now) < 0) return -1;
  return put_before(view, change);
}

static int open_side(int view, const char *name) { return mkdirat(view, name, 0700) < 0 ? -1 : open_beneath(view, name, O_RDONLY | O_DIRECTORY); }

int layer_view(const struct layer *layer, const struct zone_paths *chosen, char failed[PATH_MAX]) {
  struct view view = {.layer = layer, .chosen = chosen};
  copy_text(failed, PATH_MAX, VIEW);
  if (remove_tree(layer->fd, VIEW) < 0) return -1;
  if (chosen->count == 0) return 0;
  if (mkdirat(layer->fd, VIEW, 0700) < 0) return -1;
  int fd = open_beneath(layer->fd, VIEW, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || (view.before = open_side(fd, "a")) < 0 || (view.now = open_side(fd, "b")) < 0) return -1;
  return layer_changes(layer, on_change, &view, failed);
}
