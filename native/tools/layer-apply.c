#include "tools/layer-apply.h"

#include "lib/arena.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/repository.h"
#include "lib/layer-copy.h"
#include "tools/layer-journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `length` bytes of a path, 0 for the root of the zone. */
static int knows_repository(const struct choice *choice, size_t zone, const char *path, size_t length) {
  char *copy = length ? strndup(path, length) : strdup(".");
  int knows = copy && zone_paths_have(&choice->repositories, (struct zone_path){zone, copy});
  free(copy);
  return knows;
}

/* ---- what is being prepared ---- */

/* A directory that was made under a number, and gets its mode when it is filled. */
struct filled {
  size_t zone;
  int is_known; /* to the caller, as a repository */
  char *name;
  struct stat status;
};

/* A path, with the number that its tree was made under, or that takes it. */
struct root {
  char *path;
  size_t length, zone;
  char number[24];
};

struct apply {
  const struct layer *layer;
  const struct choice *choice;
  struct journal journal;
  struct step *later; /* modes of directories that stay: not before their entries are in place */
  size_t later_count;
  struct filled *filled;
  size_t filled_count;
  struct root made, gone; /* the last of each; path NULL = none */
  char *name; /* in a stage, for one change at a time */
  size_t name_room;
  struct arena arena;
  size_t conflicts, found; /* of the choice: those that another command has applied meanwhile are not there any more */
  size_t narrowed;         /* modes that are wider in the layer than what is applied */
};

/* The rest of the path below the root; NULL = it is not below. */
static const char *below(const struct root *root, const struct change *change) {
  if (!root->path || root->zone != change->zone || strncmp(root->path, change->path, root->length) != 0) return NULL;
  return change->path[root->length] == '/' ? change->path + root->length : NULL;
}

static int set_root(struct root *root, const struct change *change, size_t number) {
  free(root->path);
  if (!(root->path = strdup(change->path))) return -1;
  root->length = strlen(root->path);
  snprintf(root->number, sizeof root->number, "%zu", number);
  root->zone = change->zone;
  return 0;
}

static const struct stat *owner_of(const struct apply *apply, const struct change *change) { return &apply->layer->zone[change->zone].root; }

static mode_t mode_of(struct apply *apply, const struct change *change) {
  mode_t mode = mode_to_apply(apply->layer, change, &apply->choice->modes);
  if (change->kind != DELETED && !S_ISLNK(change->now.st_mode) && mode != (change->now.st_mode & 0777)) apply->narrowed++;
  return mode;
}

static int note_filled(struct apply *apply, const struct change *change, const char *name, const struct stat *status) {
  int is_zones = change->directory == change->host; /* nothing of it is the layer's */
  int is_known = is_zones || knows_repository(apply->choice, change->zone, change->path, strlen(change->path));
  struct filled filled = {change->zone, is_known, arena_copy(&apply->arena, name, strlen(name)), *status};
  return filled.name ? append(apply->filled, apply->filled_count, &filled) : -1;
}

/* `name` is a path in the stage of the zone. */
static int make_object(struct apply *apply, const struct change *change, const char *name) {
  const char *last;
  int stage = journal_stage(&apply->journal, change->zone);
  int to = stage < 0 ? -1 : open_parent_beneath(stage, name, &last);
  if (to < 0) return -1;
  struct object object = {.from = change->directory, .name = change->name, .status = change->now, .host = S_ISREG(change->origin.st_mode) ? change->host : -1};
  object.status.st_mode = (change->now.st_mode & S_IFMT) | mode_of(apply, change);
  int done = copy_object(&object, to, last, owner_of(apply, change));
  if (done == 0 && S_ISDIR(change->now.st_mode)) done = note_filled(apply, change, name, &object.status);
  return close_with(to, done);
}

/* A renamed directory brings what the zone has in it now, which a command that lives may have made since the caller looked. */
static int finish_directory(int fd, const struct filled *filled) {
  int is_new = filled->is_known ? 0 : repository_is_in(fd);
  if (is_new) return is_new > 0 ? (errno = ESTALE, -1) : -1;
  return copy_attributes(fd, &filled->status);
}

/* Children came after their parents, so backwards no mode is in the way. */
static int finish_directories(struct apply *apply) {
  for (size_t i = apply->filled_count; i-- > 0;) {
    const struct filled *filled = &apply->filled[i];
    int fd = open_beneath(journal_stage(&apply->journal, filled->zone), filled->name, O_RDONLY | O_DIRECTORY);
    if (close_with(fd, fd < 0 ? -1 : finish_directory(fd, filled)) < 0) return -1;
  }
  return 0;
}

/* ---- steps ---- */

static int read_parent_time(const struct apply *apply, const struct change *change, struct timespec *time) {
  const char *name;
  struct stat status;
  int fd = open_parent_beneath(apply->layer->zone[change->zone].lower, change->path, &name);
  int done = close_with(fd, fd < 0 ? -1 : fstat(fd, &status));
  if (done == 0) *time = status.st_mtim;
  return done;
}

static int read_made(struct apply *apply, struct step *step) {
  char name[24];
  struct stat status;
  snprintf(name, sizeof name, "%zu", step->number);
  if (fstatat(journal_stage(&apply->journal, step->zone), name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  step->made = status.st_ino;
  step->made_time = status.st_mtim;
  step->made_size = status.st_size;
  return 0;
}

static int is_in_known_repository(const struct apply *apply, const struct change *change) {
  const char *slash = strrchr(change->path, '/');
  return knows_repository(apply->choice, change->zone, change->path, slash ? (size_t)(slash - change->path) : 0);
}

static int add_step(struct apply *apply, const struct change *change, enum step_kind kind, size_t number) {
  struct step step = {.is_known = is_in_known_repository(apply, change), .kind = kind, .zone = change->zone, .number = number, .before = change->before, .was = change->before.st_ino,
                      .old_mode = change->before.st_mode & 07777};
  step.mode = (step.old_mode & ~0777u) | (kind == STEP_MODE ? mode_of(apply, change) : 0);
  if (kind == STEP_MODE && step.mode == step.old_mode) return apply->found--, 0; /* nothing of it crosses */
  step.path = arena_copy(&apply->arena, change->path, strlen(change->path));
  if (!step.path || read_parent_time(apply, change, &step.parent) < 0) return -1;
  if ((kind == STEP_NEW || kind == STEP_EXCHANGE) && read_made(apply, &step) < 0) return -1;
  return kind == STEP_MODE ? append(apply->later, apply->later_count, &step) : journal_add(&apply->journal, &step);
}

static int add_later(struct apply *apply) {
  for (size_t i = apply->later_count; i-- > 0;)
    if (journal_add(&apply->journal, &apply->later[i]) < 0) return -1;
  return 0;
}

/* ---- changes ---- */

static int is_in_the_way(const struct apply *apply, const struct change *change) { return change->conflict && !apply->choice->is_forced; }

static int tell_conflict(struct apply *apply, const struct change *change) {
  apply->conflicts++;
  return printf("conflict%c%s%c", 0, change->path, 0) < 0 ? -1 : 0;
}

static int take(struct apply *apply, const struct change *change) {
  size_t number = apply->journal.steps + apply->later_count;
  char name[24];
  snprintf(name, sizeof name, "%zu", number);
  if (change->kind == MODE) return add_step(apply, change, STEP_MODE, number);
  if (change->kind == DELETED) return set_root(&apply->gone, change, number) < 0 ? -1 : add_step(apply, change, STEP_REMOVE, number);
  if (make_object(apply, change, name) < 0 || set_root(&apply->made, change, number) < 0) return -1;
  return add_step(apply, change, change->before.st_mode ? STEP_EXCHANGE : STEP_NEW, number);
}

/* In a tree that is made: what was not chosen is left out, what a renamed directory brought along is not asked about. */
static int fill(struct apply *apply, const struct change *change, const char *rest, int is_chosen) {
  size_t wanted = strlen(apply->made.number) + strlen(rest) + 1;
  if (change->kind == DELETED) return is_in_the_way(apply, change) ? tell_conflict(apply, change) : 0;
  if (change->kind != KEPT && !is_chosen) return 0;
  if (wanted > apply->name_room) {
    char *more = realloc(apply->name, 2 * wanted);
    if (!more) return -1;
    apply->name = more;
    apply->name_room = 2 * wanted;
  }
  snprintf(apply->name, wanted, "%s%s", apply->made.number, rest);
  return make_object(apply, change, apply->name);
}

static int on_change(void *data, const struct change *change) {
  struct apply *apply = data;
  const char *rest;
  if (change->kind == GIT || change->kind == NEW_GIT) return 0;
  int is_chosen = zone_paths_have(&apply->choice->changes, (struct zone_path){change->zone, change->path});
  apply->found += (size_t)is_chosen;
  if ((rest = below(&apply->made, change))) return fill(apply, change, rest, is_chosen);
  int is_gone = below(&apply->gone, change) != NULL;
  if (!is_gone && (!is_chosen || change->kind == KEPT)) return 0;
  if (is_in_the_way(apply, change)) return tell_conflict(apply, change);
  return is_gone ? 0 : take(apply, change);
}

static enum apply_end carry_out(struct apply *apply, char failed[PATH_MAX]) {
  int done = layer_changes(apply->layer, on_change, apply, failed);
  if (done == 0 && apply->conflicts > 0) return APPLY_CONFLICT;
  if (done == 0) done = finish_directories(apply);
  if (done == 0) done = add_later(apply);
  if (done == 0 && apply->journal.steps > 0) done = journal_carry_out(&apply->journal, failed);
  return done == 0 ? APPLY_DONE : APPLY_FAILED;
}

enum apply_end layer_apply(const struct layer *layer, const struct choice *choice, struct applied *applied, char failed[PATH_MAX]) {
  static struct apply apply;
  apply.layer = layer;
  apply.choice = choice;
  if (journal_begin(&apply.journal, layer) < 0) return APPLY_FAILED;
  enum apply_end end = carry_out(&apply, failed);
  *applied = (struct applied){apply.found, apply.narrowed};
  if (end == APPLY_DONE && apply.journal.steps > 0) return end; /* one of nothing must not be the one that undo takes back */
  int error = errno;
  char place[PATH_MAX];
  if (journal_take_back(&apply.journal, place) < 0) copy_text(failed, PATH_MAX, place); /* the next verb tries again */
  errno = error;
  return end;
}
