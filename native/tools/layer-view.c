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

/* A root, and the directory of the last object below it (-1 without one): that of the next is most often the same. */
struct place {
  int root, fd;
  char *path;
};

struct view {
  const struct layer *layer;
  const struct zone_paths *chosen;
  struct place before, now, zone; /* a, b, what a is made of */
  size_t renamed_zone; /* of the last renamed directory that was chosen */
  char *renamed;
};

static int is_brought(const struct view *view, const struct change *change) {
  size_t length = view->renamed ? strlen(view->renamed) : 0;
  return length && view->renamed_zone == change->zone && strncmp(view->renamed, change->path, length) == 0 && change->path[length] == '/';
}

/* The directory of a path, "." for the root; NULL with errno. The caller frees it. */
static char *parent_of(const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

/* In a directory that may be a link by now: what another change has put there is not followed. Closes `directory`. */
static int enter(int directory, const char *name) {
  int made = mkdirat(directory, name, 0700) == 0 || errno == EEXIST;
  return close_with(directory, made ? openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
}

/* A directory, made with those above it. */
static int make_directory(int root, const char *path) {
  char *rest = strdup(path), *name = rest;
  int fd = rest ? fcntl(root, F_DUPFD_CLOEXEC, 3) : -1;
  for (char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
    *slash = 0;
    fd = enter(fd, name);
  }
  if (fd >= 0) fd = enter(fd, name);
  free(rest);
  return fd;
}

static int open_directory(int root, const char *path) { return open_beneath(root, path, O_PATH | O_DIRECTORY); }

/* The place keeps the descriptor, and the path, NULL = there was no memory for it. -1 with errno. */
static int enter_below(struct place *place, char *path, int (*reach)(int root, const char *path)) {
  if (!path) return -1;
  if (place->fd >= 0 && strcmp(place->path, path) == 0) return free(path), place->fd;
  if (place->fd >= 0) close(place->fd);
  free(place->path);
  place->path = path;
  return place->fd = reach(place->root, path);
}

/* The place does not own its root. */
static void leave(struct place *place, int root) {
  if (place->fd >= 0) close(place->fd);
  place->fd = -1;
  place->root = root;
}

/* Zones can have the same paths. NULL with errno; the caller frees it. */
static char *path_in_view(const struct view *view, const struct change *change) {
  char *path;
  if (view->layer->zones == 1) return strdup(change->path);
  return asprintf(&path, "%zu/%s", change->zone, change->path) < 0 ? NULL : path;
}

static int put(const struct view *view, struct place *place, const struct change *change, int from, const char *name, const struct stat *status) {
  if (!S_ISREG(status->st_mode) && !S_ISLNK(status->st_mode)) return 0; /* a patch has no directories */
  const char *new_name;
  char *path = path_in_view(view, change);
  int to = path ? enter_below(place, parent_of(path, &new_name), make_directory) : -1;
  int done = to < 0 ? -1 : copy_to_read(from, name, status, to, new_name);
  free(path);
  return done;
}

static int put_before(struct view *view, const struct change *change) {
  const char *name;
  if (change->before.st_mode == 0 || change->kind == KEPT) return 0; /* what a renamed directory brought was not at this path */
  int zone = view->layer->zone[change->zone].lower;
  if (view->zone.root != zone) leave(&view->zone, zone);
  int from = enter_below(&view->zone, parent_of(change->path, &name), open_directory);
  return from < 0 ? -1 : put(view, &view->before, change, from, name, &change->before);
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
  if (change->kind != DELETED && put(view, &view->now, change, change->directory, change->name, &change->now) < 0) return -1;
  return put_before(view, change);
}

static int open_side(struct place *side, int view, const char *name) {
  side->root = mkdirat(view, name, 0700) < 0 ? -1 : open_beneath(view, name, O_RDONLY | O_DIRECTORY);
  return side->root < 0 ? -1 : 0;
}

int layer_view(const struct layer *layer, const struct zone_paths *chosen, char failed[PATH_MAX]) {
  struct view view = {.layer = layer, .chosen = chosen, .before.fd = -1, .now.fd = -1, .zone = {.root = -1, .fd = -1}};
  copy_text(failed, PATH_MAX, VIEW);
  if (remove_tree(layer->fd, VIEW) < 0) return -1;
  if (chosen->count == 0) return 0;
  if (mkdirat(layer->fd, VIEW, 0700) < 0) return -1;
  int fd = open_beneath(layer->fd, VIEW, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || open_side(&view.before, fd, "a") < 0 || open_side(&view.now, fd, "b") < 0) return -1;
  return layer_changes(layer, on_change, &view, failed);
}
