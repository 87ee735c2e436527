#include "tools/layer-view.h"

#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/layer-copy.h"
#include "tools/layer-journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VIEW "view"

struct view {
  const struct layer *layer;
  const struct choice *choice;
  int before, now; /* a, b */
  struct stat own;
  size_t renamed_zone; /* of the last renamed directory that was chosen */
  char renamed[PATH_MAX];
};

static int is_brought(const struct view *view, const struct change *change) {
  size_t length = strlen(view->renamed);
  return length && view->renamed_zone == change->zone && strncmp(view->renamed, change->path, length) == 0 && change->path[length] == '/';
}

/* Splits a path into the directory, "." for the root, and the name. */
static const char *split(const char *path, char parent[PATH_MAX]) {
  const char *slash = strrchr(path, '/');
  copy_text(parent, PATH_MAX, slash ? path : ".");
  if (slash) parent[slash - path] = 0;
  return slash ? slash + 1 : path;
}

/* In a directory that may be a link by now: what another change has put there is not followed. Closes `directory`. */
static int enter(int directory, const char *name) {
  int made = mkdirat(directory, name, 0700) == 0 || errno == EEXIST;
  int fd = made ? openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1, error = errno;
  close(directory);
  errno = error;
  return fd;
}

/* The directory of a path, made with those above it. */
static int make_parents(int root, const char *path) {
  char rest[PATH_MAX], *name = rest;
  copy_text(rest, sizeof rest, path);
  int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
  for (char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
    *slash = 0;
    fd = enter(fd, name);
  }
  return fd;
}

/* Zones can have the same paths. */
static int place_in_view(const struct view *view, const struct change *change, char path[PATH_MAX]) {
  int length = view->layer->zones > 1 ? snprintf(path, PATH_MAX, "%zu/%s", change->zone, change->path) : snprintf(path, PATH_MAX, "%s", change->path);
  return length < PATH_MAX ? 0 : (errno = ENAMETOOLONG, -1);
}

static int put(const struct view *view, int root, const struct change *change, int from, const char *name, const struct stat *status) {
  struct stat plain = *status;
  char path[PATH_MAX];
  if (!S_ISREG(status->st_mode) && !S_ISLNK(status->st_mode)) return 0; /* a patch has no directories */
  plain.st_mode = (status->st_mode & S_IFMT) | 0600 | (status->st_mode & 0111 ? 0100 : 0);
  if (place_in_view(view, change, path) < 0) return -1;
  const char *slash = strrchr(path, '/');
  int to = make_parents(root, path);
  int done = to < 0 ? -1 : copy_object(from, name, &plain, to, slash ? slash + 1 : path, &view->own), error = errno;
  if (to >= 0) close(to);
  errno = error;
  return done;
}

static int put_before(const struct view *view, const struct change *change) {
  char parent[PATH_MAX];
  const char *name = split(change->path, parent);
  if (change->before.st_mode == 0 || change->kind == KEPT) return 0; /* what a renamed directory brought was not at this path */
  int from = open_beneath(view->layer->zone[change->zone].lower, parent, O_PATH | O_DIRECTORY);
  int done = from < 0 ? -1 : put(view, view->before, change, from, name, &change->before), error = errno;
  if (from >= 0) close(from);
  errno = error;
  return done;
}

static int on_change(void *data, const struct change *change) {
  struct view *view = data;
  struct chosen wanted = {change->zone, change->path, 0};
  if (change->kind == GIT || change->kind == NEW_GIT || !(change->kind == KEPT ? is_brought(view, change) : choice_has(view->choice, &wanted))) return 0;
  if (change->kind == RENAMED) copy_text(view->renamed, sizeof view->renamed, change->path), view->renamed_zone = change->zone;
  if (change->kind != DELETED && put(view, view->now, change, change->directory, change->name, &change->now) < 0) return -1;
  return put_before(view, change);
}

static int open_side(int view, const char *name) {
  return mkdirat(view, name, 0700) < 0 ? -1 : open_beneath(view, name, O_RDONLY | O_DIRECTORY);
}

int layer_view(const struct layer *layer, const struct choice *choice, char failed[PATH_MAX]) {
  struct view view = {.layer = layer, .choice = choice};
  copy_text(failed, PATH_MAX, VIEW);
  if (remove_tree(layer->fd, VIEW) < 0 || mkdirat(layer->fd, VIEW, 0700) < 0) return -1;
  int fd = open_beneath(layer->fd, VIEW, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || fstat(fd, &view.own) < 0) return -1;
  view.before = open_side(fd, "a");
  view.now = open_side(fd, "b");
  return view.before < 0 || view.now < 0 ? -1 : layer_changes(layer, on_change, &view, failed);
}
