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

/* A root, and the directory of the last object below it (-1 without one): that of the next is most often the same. */
struct place {
  int root, fd;
  char path[PATH_MAX];
};

struct view {
  const struct layer *layer;
  const struct choice *choice;
  struct place before, now, zone; /* a, b, what a is made of */
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

/* A directory, made with those above it. */
static int make_directory(int root, const char *path) {
  char rest[PATH_MAX], *name = rest;
  copy_text(rest, sizeof rest, path);
  int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
  for (char *slash; fd >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
    *slash = 0;
    fd = enter(fd, name);
  }
  return fd < 0 ? -1 : enter(fd, name);
}

static int open_directory(int root, const char *path) { return open_beneath(root, path, O_PATH | O_DIRECTORY); }

/* The place keeps the descriptor. -1 with errno. */
static int enter_below(struct place *place, const char *path, int (*reach)(int root, const char *path)) {
  if (place->fd >= 0 && strcmp(place->path, path) == 0) return place->fd;
  if (place->fd >= 0) close(place->fd);
  copy_text(place->path, sizeof place->path, path);
  return place->fd = reach(place->root, path);
}

/* The place does not own its root. */
static void leave(struct place *place, int root) {
  if (place->fd >= 0) close(place->fd);
  place->fd = -1;
  place->root = root;
}

/* Zones can have the same paths. */
static int place_in_view(const struct view *view, const struct change *change, char path[PATH_MAX]) {
  int length = view->layer->zones > 1 ? snprintf(path, PATH_MAX, "%zu/%s", change->zone, change->path) : snprintf(path, PATH_MAX, "%s", change->path);
  return length < PATH_MAX ? 0 : (errno = ENAMETOOLONG, -1);
}

static int put(const struct view *view, struct place *place, const struct change *change, int from, const char *name, const struct stat *status) {
  char path[PATH_MAX], parent[PATH_MAX];
  if (!S_ISREG(status->st_mode) && !S_ISLNK(status->st_mode)) return 0; /* a patch has no directories */
  if (place_in_view(view, change, path) < 0) return -1;
  const char *new_name = split(path, parent);
  int to = enter_below(place, parent, make_directory);
  return to < 0 ? -1 : copy_to_read(from, name, status, to, new_name);
}

static int put_before(struct view *view, const struct change *change) {
  char parent[PATH_MAX];
  const char *name = split(change->path, parent);
  if (change->before.st_mode == 0 || change->kind == KEPT) return 0; /* what a renamed directory brought was not at this path */
  int zone = view->layer->zone[change->zone].lower;
  if (view->zone.root != zone) leave(&view->zone, zone);
  int from = enter_below(&view->zone, parent, open_directory);
  return from < 0 ? -1 : put(view, &view->before, change, from, name, &change->before);
}

static int on_change(void *data, const struct change *change) {
  struct view *view = data;
  struct chosen wanted = {change->zone, change->path, 0};
  if (change->kind == GIT || change->kind == NEW_GIT || !(change->kind == KEPT ? is_brought(view, change) : choice_has(view->choice, &wanted))) return 0;
  if (change->kind == RENAMED) copy_text(view->renamed, sizeof view->renamed, change->path), view->renamed_zone = change->zone;
  if (change->kind != DELETED && put(view, &view->now, change, change->directory, change->name, &change->now) < 0) return -1;
  return put_before(view, change);
}

static int open_side(struct place *side, int view, const char *name) {
  side->root = mkdirat(view, name, 0700) < 0 ? -1 : open_beneath(view, name, O_RDONLY | O_DIRECTORY);
  return side->root < 0 ? -1 : 0;
}

int layer_view(const struct layer *layer, const struct choice *choice, char failed[PATH_MAX]) {
  struct view view = {.layer = layer, .choice = choice, .before.fd = -1, .now.fd = -1, .zone = {.root = -1, .fd = -1}};
  copy_text(failed, PATH_MAX, VIEW);
  if (remove_tree(layer->fd, VIEW) < 0) return -1;
  if (choice->count == 0) return 0;
  if (mkdirat(layer->fd, VIEW, 0700) < 0) return -1;
  int fd = open_beneath(layer->fd, VIEW, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || open_side(&view.before, fd, "a") < 0 || open_side(&view.now, fd, "b") < 0) return -1;
  return layer_changes(layer, on_change, &view, failed);
}
