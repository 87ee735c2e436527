#include "tools/layer-changes.h"

#include "lib/arena.h"
#include "lib/files.h"
#include "lib/layer.h"
#include "lib/report-failure.h"
#include "lib/repository.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>

/* ---- zones ---- */

static int open_lower(struct layer_zone *zone, const struct entry *entry) {
  zone->source = entry->word[0];
  zone->is_copied = is_copied(entry);
  zone->lower = layer_open_source(entry);
  return zone->lower < 0 ? -1 : fstat(zone->lower, &zone->root);
}

static int read_since(const struct launchfile *record, struct timespec *since) {
  struct entry entry;
  uint64_t seconds, nanoseconds;
  if (!launchfile_find(record, V_SINCE, &entry) || parse_number(entry.word[0], INT64_MAX, &seconds) < 0 ||
      parse_number(entry.word[1], 999999999, &nanoseconds) < 0)
    return errno = EINVAL, -1;
  *since = (struct timespec){(time_t)seconds, (long)nanoseconds};
  return 0;
}

int layer_open_zones(struct layer *layer, char failed[PATH_MAX]) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(&layer->record, &position, &entry)) {
    if (!is_layered(&entry)) continue;
    copy_text(failed, PATH_MAX, entry.word[0]);
    struct layer_zone zone = {0};
    if (open_lower(&zone, &entry) < 0 || (zone.upper = layer_open_upper(layer->fd, layer->zones)) < 0) return -1;
    if (read_since(&layer->record, &zone.since) < 0) return -1;
    if (append(layer->zone, layer->zones, &zone) < 0) return -1;
  }
  return 0;
}

/* ---- names of a directory ---- */

struct names {
  char **name;
  size_t count;
  struct arena arena;
};

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void free_names(struct names *names) {
  free(names->name);
  arena_free(&names->arena);
}

static int add_name(struct names *names, const char *name) {
  char *copy = arena_copy(&names->arena, name, strlen(name));
  return copy ? append(names->name, names->count, &copy) : -1;
}

static int read_names(int directory, struct names *names) {
  *names = (struct names){0};
  int done = 0;
  DIR *entries = entries_open(directory);
  if (!entries) return -1;
  for (const char *name; done == 0 && (name = entries_next(entries));) done = add_name(names, name);
  if (entries_close(entries, done) < 0) return free_names(names), -1;
  if (names->count > 0) qsort(names->name, names->count, sizeof *names->name, by_bytes);
  return 0;
}

static int has_name(const struct names *names, const char *name) {
  return names->count > 0 && bsearch(&name, names->name, names->count, sizeof *names->name, by_bytes) != NULL;
}

/* ---- the walk ---- */

struct walk {
  const struct layer *layer;
  const struct layer_zone *zone;
  size_t number;
  change_report *report;
  void *data;
  char *path; /* grows */
  size_t length, room;
  size_t depth, deepest;
  /* For one name at a time, and never over what is below it. */
  char target[PATH_MAX], redirect[PATH_MAX];
  const char *marks; /* prefix of overlay's xattrs */
  int is_moved;      /* what is hidden here may have come with a directory since the run began: its own ctime does not tell */
};

/* How the zone's directory stands to the upper one. */
enum relation {
  MERGED,  /* what the upper one does not have is the zone's */
  HIDDEN,  /* what the upper one does not have is gone */
  BROUGHT, /* the directory was renamed: the zone's is where it was before */
  ALONE    /* there is none */
};

static int make_room(struct walk *walk, size_t wanted) {
  if (wanted <= walk->room) return 0;
  char *more = realloc(walk->path, 2 * wanted);
  if (!more) return -1;
  walk->path = more;
  walk->room = 2 * wanted;
  return 0;
}

static int push(struct walk *walk, const char *name, size_t *before) {
  size_t length = strlen(name);
  *before = walk->length;
  if (walk->depth >= walk->deepest) return errno = ENAMETOOLONG, -1;
  if (make_room(walk, walk->length + length + 2) < 0) return -1;
  walk->depth++;
  if (walk->length) walk->path[walk->length++] = '/';
  memcpy(walk->path + walk->length, name, length + 1);
  walk->length += length;
  return 0;
}

static void pop(struct walk *walk, size_t before) {
  walk->depth--;
  walk->length = before;
  walk->path[before] = 0;
}

static int is_whiteout(const struct stat *status) { return S_ISCHR(status->st_mode) && status->st_rdev == 0; }

static int is_later(const struct timespec *time, const struct timespec *since) {
  return time->tv_sec > since->tv_sec || (time->tv_sec == since->tv_sec && time->tv_nsec >= since->tv_nsec);
}

/* No user can set ctime, and every change moves it. */
static int has_changed(const struct walk *walk, const struct stat *before) {
  if (before->st_mode == 0) return 0;
  if (walk->is_moved) return 1;
  if (!is_later(&before->st_ctim, &walk->zone->since)) return 0;
  return !notes_have(&walk->layer->notes, (struct zone_path){walk->number, walk->length ? walk->path : "."}, before->st_ctim);
}

/* An unreadable attribute counts as capabilities: for one in the name of another user namespace the kernel returns EOVERFLOW. */
static int has_capabilities(int directory, const char *name) {
  int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  int has = fd < 0 || getxattr(fd_path(fd).text, "security.capability", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
  return close_with(fd, has);
}

static int is_program_with_rights(const struct stat *status) { return S_ISREG(status->st_mode) && (status->st_mode & 06000) != 0; }

/* Of the layer only the bits count: a command cannot set capabilities, and no copy has them. */
static int is_privileged(const struct change *change) {
  if (change->kind == KEPT || change->kind == GIT || change->kind == NEW_GIT) return 0;
  if (is_program_with_rights(&change->origin) || (change->kind != DELETED && is_program_with_rights(&change->now))) return 1;
  return S_ISREG(change->origin.st_mode) && has_capabilities(change->host, change->name);
}

static int tell(struct walk *walk, struct change change) {
  change.zone = walk->number;
  change.path = walk->length ? walk->path : ".";
  if (!change.other) change.other = "";
  change.is_privileged = is_privileged(&change);
  return walk->report(walk->data, &change);
}

/* Whether there is something of that name: 1, 0, or -1 with errno. `status` is zero without. */
static int look(int directory, const char *name, struct stat *status) {
  memset(status, 0, sizeof *status);
  if (directory < 0) return 0;
  if (fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) == 0) return 1;
  memset(status, 0, sizeof *status);
  return errno == ENOENT ? 0 : -1;
}

/* The value of a mark of overlay's, "" without one. */
static int read_mark(const struct walk *walk, int directory, const char *mark, char *value, size_t room) {
  char name[64];
  if (walk->zone->is_copied) return value[0] = 0; /* what looks like a mark is a command's */
  snprintf(name, sizeof name, "%s%s", walk->marks, mark);
  ssize_t length = fgetxattr(directory, name, value, room - 1);
  if (length < 0 && errno != ENODATA && errno != EOPNOTSUPP) return -1;
  value[length < 0 ? 0 : length] = 0;
  return 0;
}

static int read_link(int directory, const char *name, char target[PATH_MAX]) {
  ssize_t length = readlinkat(directory, name, target, PATH_MAX - 1);
  if (length < 0) return -1;
  target[length] = 0;
  return 0;
}

static int walk_pair(struct walk *walk, int upper, int lower, enum relation relation);

/* ---- what is gone, and what came along ---- */

static int tell_tree(struct walk *walk, enum change_kind kind, int directory, const char *name, int nested);

static int tell_children(struct walk *walk, enum change_kind kind, int directory) {
  struct names names;
  if (read_names(directory, &names) < 0) return -1;
  int done = 0;
  for (size_t i = 0; i < names.count && done == 0; i++) {
    size_t before;
    if (push(walk, names.name[i], &before) < 0) return free_names(&names), -1;
    done = tell_tree(walk, kind, directory, names.name[i], 1);
    if (done == 0) pop(walk, before);
  }
  free_names(&names);
  return done;
}

/* Of the zone: a name with everything below it. */
static int tell_tree(struct walk *walk, enum change_kind kind, int directory, const char *name, int nested) {
  struct stat status;
  walk->target[0] = 0;
  if (look(directory, name, &status) <= 0) return -1;
  if (S_ISLNK(status.st_mode) && read_link(directory, name, walk->target) < 0) return -1;
  struct change change = {.kind = kind, .directory = directory, .name = name, .now = status, .before = status, .origin = status,
                          .host = directory, .nested = nested, .other = walk->target};
  change.conflict = kind == DELETED && has_changed(walk, &status);
  int done = tell(walk, change);
  if (done != 0 || !S_ISDIR(status.st_mode)) return done;
  int fd = open_beneath(directory, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -1;
  int was_moved = walk->is_moved;
  if (change.conflict) walk->is_moved = 1;
  done = tell_children(walk, kind, fd);
  walk->is_moved = was_moved;
  return close_with(fd, done);
}

/* Reports the entries of a directory that was replaced by something else. */
static int tell_replaced(struct walk *walk, int lower, const struct change *change) {
  if ((change->kind != TYPE && change->kind != RENAMED) || !S_ISDIR(change->before.st_mode)) return 0;
  int fd = open_beneath(lower, change->name, O_RDONLY | O_DIRECTORY);
  return close_with(fd, fd < 0 ? -1 : tell_children(walk, DELETED, fd));
}

/* ---- files ---- */

/* 1, 0, or -1 with errno. */
static int same_bytes(int a, int b) {
  static char of_a[1 << 16], of_b[1 << 16];
  for (;;) {
    ssize_t got = read(a, of_a, sizeof of_a), room = 0;
    if (got <= 0) return got < 0 ? -1 : 1;
    for (ssize_t more; room < got; room += more) {
      more = read(b, of_b + room, (size_t)(got - room));
      if (more < 0) return -1;
      if (more == 0) return 0;
    }
    if (memcmp(of_a, of_b, (size_t)got) != 0) return 0;
  }
}

static int same_content(int upper, int lower, const char *name, const struct stat *a, const struct stat *b) {
  if (a->st_size != b->st_size) return 0;
  int first = open_beneath(upper, name, O_RDONLY | O_NONBLOCK), second = first < 0 ? -1 : open_beneath(lower, name, O_RDONLY | O_NONBLOCK);
  return close_with(first, close_with(second, second < 0 ? -1 : same_bytes(first, second)));
}

static int same_target(int lower, const char *name, const char *target) {
  char other[PATH_MAX];
  return read_link(lower, name, other) < 0 ? -1 : strcmp(other, target) == 0;
}

#define PERMISSIONS 0777

/* KEPT = nothing but times; -1 with errno. Files of the same type. */
static int compare(int upper, int lower, const struct change *change) {
  const struct stat *now = &change->now, *before = &change->before;
  if (S_ISLNK(now->st_mode)) {
    int same = same_target(lower, change->name, change->other);
    return same < 0 ? -1 : same ? KEPT : SYMLINK;
  }
  if (!S_ISREG(now->st_mode)) return now->st_rdev == before->st_rdev ? KEPT : TYPE;
  int same = same_content(upper, lower, change->name, now, before);
  if (same < 0) return -1;
  if (!same) return MODIFIED;
  return (now->st_mode & PERMISSIONS) == (before->st_mode & PERMISSIONS) ? KEPT : MODE;
}

static int tell_file(struct walk *walk, int upper, int lower, struct change *change, enum relation relation) {
  int kind = change->before.st_mode == 0                                             ? ADDED
             : (change->now.st_mode & S_IFMT) != (change->before.st_mode & S_IFMT) ? TYPE
                                                                                     : compare(upper, lower, change);
  if (kind < 0) return -1;
  change->kind = (enum change_kind)kind;
  if (relation == BROUGHT) change->before = (struct stat){0}; /* the zone has nothing at this path */
  if (kind == KEPT && relation != BROUGHT) return 0;
  change->conflict = has_changed(walk, &change->before);
  int done = tell(walk, *change);
  return done == 0 ? tell_replaced(walk, lower, change) : done;
}

static int visit_file(struct walk *walk, int upper, int lower, const struct change *seen, enum relation relation) {
  struct change change = *seen;
  walk->target[0] = 0;
  if (S_ISLNK(change.now.st_mode) && read_link(upper, change.name, walk->target) < 0) return -1;
  change.other = walk->target;
  return tell_file(walk, upper, lower, &change, relation);
}

/* ---- directories ---- */

static int visit_merged(struct walk *walk, int upper, int lower, struct change *change, enum relation relation);

/* `from` is relative to the zone's root. */
static int visit_renamed_from(struct walk *walk, int upper, int lower, struct change *change, const char *from) {
  int source = open_beneath(walk->zone->lower, from, O_RDONLY | O_DIRECTORY), is_gone = source < 0;
  if (is_gone && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return -1;
  if (is_gone && S_ISDIR(change->before.st_mode)) return visit_merged(walk, upper, lower, change, MERGED); /* it was applied */
  struct change renamed = *change;
  renamed.kind = RENAMED;
  renamed.origin = (struct stat){0};
  if (!is_gone && fstat(source, &renamed.origin) < 0) return close(source), -1;
  renamed.other = from;
  renamed.conflict = is_gone || has_changed(walk, &change->before);
  int done = tell(walk, renamed);
  if (done == 0) done = walk_pair(walk, upper, source, is_gone ? ALONE : BROUGHT);
  if (!is_gone) close(source);
  return done == 0 ? tell_replaced(walk, lower, &renamed) : done;
}

/* Where it was: a name in the same directory, or a path from the zone's root. */
static int visit_renamed(struct walk *walk, int upper, int lower, struct change *change, const char *redirect) {
  size_t parent = walk->length - strlen(change->name);
  char *from = NULL;
  if (redirect[0] == '/' ? !(from = strdup(redirect + 1)) : asprintf(&from, "%.*s%s", (int)parent, walk->path, redirect) < 0) return -1;
  int done = visit_renamed_from(walk, upper, lower, change, from);
  free(from);
  return done;
}
static int visit_merged(struct walk *walk, int upper, int lower, struct change *change, enum relation relation) {
  int is_kept = (change->now.st_mode & PERMISSIONS) == (change->before.st_mode & PERMISSIONS), done = 0;
  int below = open_beneath(lower, change->name, O_RDONLY | O_DIRECTORY);
  if (below < 0) return -1;
  change->kind = is_kept ? KEPT : MODE;
  change->conflict = has_changed(walk, &change->before);
  if (relation == BROUGHT) change->before = (struct stat){0};
  if (!is_kept || relation == BROUGHT) done = tell(walk, *change);
  int was_moved = walk->is_moved;
  if (relation == HIDDEN && change->conflict) walk->is_moved = 1;
  if (done == 0) done = walk_pair(walk, upper, below, relation);
  walk->is_moved = was_moved;
  return close_with(below, done);
}

static int visit_opened(struct walk *walk, int upper, int lower, struct change *change, enum relation relation) {
  char opaque[8], *redirect = walk->redirect;
  if (read_mark(walk, upper, "redirect", redirect, sizeof walk->redirect) < 0 || read_mark(walk, upper, "opaque", opaque, sizeof opaque) < 0) return -1;
  if (redirect[0] && relation == BROUGHT) change->before = (struct stat){0};
  if (redirect[0]) return visit_renamed(walk, upper, lower, change, redirect);
  int hides = opaque[0] == 'y', is_there = S_ISDIR(change->before.st_mode);
  if (is_there && !(hides && relation == BROUGHT)) return visit_merged(walk, upper, lower, change, hides ? HIDDEN : relation);
  if (relation == BROUGHT) change->before = (struct stat){0};
  change->kind = change->before.st_mode == 0 ? ADDED : TYPE;
  change->conflict = has_changed(walk, &change->before);
  int done = tell(walk, *change);
  return done == 0 ? walk_pair(walk, upper, -1, ALONE) : done;
}

static int visit_directory(struct walk *walk, int upper, int lower, struct change *change, enum relation relation) {
  int fd = open_beneath(upper, change->name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -1;
  return close_with(fd, visit_opened(walk, fd, lower, change, relation));
}

static int visit(struct walk *walk, int upper, int lower, const char *name, enum relation relation) {
  struct change change = {.directory = upper, .name = name, .host = lower};
  if (look(upper, name, &change.now) <= 0 || look(lower, name, &change.before) < 0) return -1;
  change.origin = change.before;
  if (is_whiteout(&change.now)) return change.before.st_mode == 0 || relation == BROUGHT ? 0 : tell_tree(walk, DELETED, lower, name, 0);
  if (S_ISDIR(change.now.st_mode)) return visit_directory(walk, upper, lower, &change, relation);
  return visit_file(walk, upper, lower, &change, relation);
}

static int step(struct walk *walk, int upper, int lower, const char *name, enum relation relation) {
  size_t before;
  if (push(walk, name, &before) < 0) return -1;
  int done = upper >= 0 ? visit(walk, upper, lower, name, relation)
                        : tell_tree(walk, relation == BROUGHT ? KEPT : DELETED, lower, name, 0);
  if (done == 0) pop(walk, before);
  return done;
}

/*
 * Hidden and removed entries count as if they were there: a part of the changes can be applied without the rest. -1 with errno.
 */
static int tell_repository(struct walk *walk, int lower, const struct names *names) {
  int before = lower < 0 ? 0 : repository_parts_in(lower);
  if (before < 0) return -1;
  unsigned after = (unsigned)before;
  for (size_t i = 0; i < names->count; i++) after |= repository_part(names->name[i]);
  if (repository_is((unsigned)before)) return tell(walk, (struct change){.kind = GIT});
  return repository_becomes((unsigned)before, after) ? tell(walk, (struct change){.kind = NEW_GIT}) : 0;
}

static int walk_names(struct walk *walk, int upper, int lower, const struct names *names, enum relation relation) {
  struct names rest;
  int done = tell_repository(walk, lower, names);
  for (size_t i = 0; i < names->count && done == 0; i++) done = step(walk, upper, lower, names->name[i], relation);
  if (done != 0 || lower < 0 || (relation != HIDDEN && relation != BROUGHT)) return done;
  if (read_names(lower, &rest) < 0) return -1;
  for (size_t i = 0; i < rest.count && done == 0; i++)
    if (!has_name(names, rest.name[i])) done = step(walk, -1, lower, rest.name[i], relation);
  free_names(&rest);
  return done;
}

static int walk_pair(struct walk *walk, int upper, int lower, enum relation relation) {
  struct names names;
  if (read_names(upper, &names) < 0) return -1;
  int done = walk_names(walk, upper, lower, &names, relation);
  free_names(&names);
  return done;
}

/* The root is there on both sides, and has no name: only its mode can differ. */
static int visit_root(struct walk *walk) {
  struct change change = {.kind = MODE, .directory = walk->zone->upper, .name = ".", .before = walk->zone->root, .origin = walk->zone->root,
                          .host = walk->zone->lower};
  if (fstat(walk->zone->upper, &change.now) < 0) return -1;
  change.conflict = has_changed(walk, &change.before);
  int is_kept = (change.now.st_mode & PERMISSIONS) == (change.before.st_mode & PERMISSIONS);
  int done = is_kept ? 0 : tell(walk, change);
  return done == 0 ? walk_pair(walk, walk->zone->upper, walk->zone->lower, walk->zone->is_copied ? HIDDEN : MERGED) : done;
}

/* Bytes of stack for each directory, with all that calls each other there; as measured, twice. */
#define STACK_PER_LEVEL 8192

size_t layer_deepest(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur > STACK_MOST) return STACK_MOST / STACK_PER_LEVEL;
  return (size_t)limit.rlim_cur / STACK_PER_LEVEL;
}

int layer_changes(const struct layer *layer, change_report *report, void *data, char failed[PATH_MAX]) {
  int done = 0;
  static struct walk walk;
  for (size_t i = 0; i < layer->zones && done == 0; i++) {
    walk = (struct walk){.layer = layer, .zone = &layer->zone[i], .number = i, .report = report, .data = data, .deepest = layer_deepest()};
    walk.marks = geteuid() == 0 ? "trusted.overlay." : "user.overlay.";
    if (make_room(&walk, PATH_MAX) < 0) return -1;
    walk.path[0] = 0;
    done = visit_root(&walk);
    /* A path can be longer than any call takes; then it is not named. */
    if (done != 0) copy_text(failed, PATH_MAX, walk.length < PATH_MAX ? walk.path : "a path that is too long to be named");
    free(walk.path);
  }
  return done;
}
