/* The end of the guard: what was made in spite of its protection is set aside. */
#include "lib/guard.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

#define BENEATH (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)

/* The same run may have to set the same name aside more than once, when another one makes it again. */
#define ASIDE_MAX 100

static int rename_beside(int directory, const char *name, const char *run, char aside[NAME_MAX + 1]) {
  for (int attempt = 0; attempt < ASIDE_MAX; attempt++) {
    int length = attempt == 0 ? snprintf(aside, NAME_MAX + 1, "%.*s.set-aside.%s", 160, name, run)
                              : snprintf(aside, NAME_MAX + 1, "%.*s.set-aside.%s.%d", 160, name, run, attempt);
    if (length > NAME_MAX) return errno = ENAMETOOLONG, -1;
    if (syscall(SYS_renameat2, directory, name, directory, aside, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) return -1;
  }
  return -1;
}

/* `path` is "A/B/NAME": the directory that holds NAME, opened for this. */
static int open_parent(int zone, const char *path, const char **name) {
  char parent[PATH_MAX];
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  if (!slash) return sys_openat2(zone, ".", O_PATH | O_DIRECTORY, BENEATH);
  if ((size_t)(slash - path) >= sizeof parent) return errno = ENAMETOOLONG, -1;
  memcpy(parent, path, (size_t)(slash - path));
  parent[slash - path] = 0;
  return sys_openat2(zone, parent, O_PATH | O_DIRECTORY, BENEATH);
}

static int try_aside(int zone, const char *path, const char *run, char aside[NAME_MAX + 1]) {
  const char *name;
  int directory = open_parent(zone, path, &name);
  return close_with(directory, directory < 0 ? -1 : rename_beside(directory, name, run, aside));
}

/* 1 = it is gone: its maker removed it again. */
static int set_aside(int zone, const char *path, const char *run, char aside[NAME_MAX + 1]) {
  struct unlocked unlocked = {0};
  int done = try_aside(zone, path, run, aside);
  if (done < 0 && errno == EACCES && unlock_way(&unlocked, zone, path, 0700)) done = try_aside(zone, path, run, aside);
  int error = errno;
  unlock_end(&unlocked);
  return done == 0 ? 0 : error == ENOENT || error == ENOTDIR ? 1 : -1;
}

static struct guard_attempt *add_attempt(struct guard *guard, const struct guard_zone *zone, const char *path) {
  static struct guard_attempt more; /* than are kept */
  struct guard_attempt *attempt = guard->attempts < GUARD_ATTEMPTS_MAX ? &guard->attempt[guard->attempts] : &more;
  *attempt = (struct guard_attempt){0};
  guard_host_path(zone, path, attempt->path, sizeof attempt->path);
  guard->attempts++;
  return attempt;
}

static void on_attempt(struct guard *guard, const struct guard_zone *zone, const char *path, const char *run) {
  char aside[NAME_MAX + 1] = "";
  int done = set_aside(zone->fd, path, run, aside);
  if (done > 0) return;
  copy_text(add_attempt(guard, zone, path)->aside, sizeof guard->attempt->aside, done == 0 ? aside : "");
}

static void on_unseen(struct guard *guard, const struct guard_zone *zone, const char *path) { add_attempt(guard, zone, path)->is_unseen = 1; }

static void sweep_look(struct guard *guard, const struct guard_zone *zone, enum look look, const char *path, const char *at, const char *run) {
  switch (look) {
    case LOOK_FOUND:
    case LOOK_LINK: return on_attempt(guard, zone, at, run);
    case LOOK_FAILED: return on_unseen(guard, zone, path);
    case LOOK_MISSING:
    case LOOK_CLOSED: return;
  }
}

static void sweep_name(struct guard *guard, const struct guard_zone *zone, const char *path, const char *run) {
  char at[PATH_MAX];
  sweep_look(guard, zone, guard_look_at_name(zone, path, at), path, at, run);
}

static void sweep_cover(struct guard *guard, const struct guard_zone *zone, const struct guard_cover *cover, const char *run) {
  char at[PATH_MAX];
  if (cover->hidden) return; /* what took its place is the user's */
  sweep_look(guard, zone, guard_look_at_cover(zone, cover, at), cover->path, at, run);
}

/* Without its HEAD nothing is a repository, and the directory stays where it is: it may be the zone's root. */
static void sweep_find(struct guard *guard, const struct guard_zone *zone, const struct find *find, const char *run) {
  char head[PATH_MAX];
  if (find->kind == FIND_TOO_DEEP) return on_unseen(guard, zone, find->path);
  if (find->kind == FIND_NAMED) return on_attempt(guard, zone, find->path, run);
  int length = snprintf(head, sizeof head, "%s%sHEAD", find->path, find->path[0] ? "/" : "");
  if ((size_t)length >= sizeof head) return on_unseen(guard, zone, find->path);
  on_attempt(guard, zone, head, run);
}

/* Root, whose index has the files, keeps that of the beginning; so does a zone that is not walked again. */
static void keep_index(const struct guard *guard, struct guard_zone *zone, struct walk *walk) {
  if (walk && walk->records) zone->listed += walk->listed;
  if (walk && walk->records && walk->listed > 0) walk_take_index(walk, &zone->tree);
  if (!guard->runs || zone->tree.generation || zone->listed <= zone->tree.directories / STALE_SHARE) return;
  if (tree_is_kept(&zone->tree)) tree_keep(&zone->tree, zone->fd, guard->runs);
  else if (zone->was_kept) tree_forget(zone->fd, hide_sum(&zone->hide), guard->runs); /* each run would ask for the times of what is gone */
}

/* Only directories that have changed since the run began are listed, and the next run lists only those that change later. */
static void sweep_repositories(struct guard *guard, struct guard_zone *zone, const char *run) {
  struct walk walk = {.zone = zone->fd, .for_git = 1, .hide = zone->hide.patterns ? &zone->hide : NULL, .known = &zone->tree, .records = geteuid() != 0 && guard->runs && tree_is_kept(&zone->tree)};
  if (!zone->has_git) return zone->only_hides ? keep_index(guard, zone, NULL) : (void)0;
  int done = walk_zone(&walk);
  for (size_t i = 0; i < walk.count; i++)
    if (walk.find[i].kind != FIND_HIDDEN && guard_is_new(zone, &walk.find[i])) sweep_find(guard, zone, &walk.find[i], run);
  if (done < 0) on_unseen(guard, zone, walk.at);
  else keep_index(guard, zone, &walk);
  walk_free(&walk);
}

/* A repository without a separate name is gone with its HEAD. */
static enum look look_at_seen(const struct guard *guard, char *at) {
  struct stat status;
  char head[PATH_MAX];
  enum look look = look_at(guard->seen_zone->fd, guard->seen_path, at, &status);
  const char *slash = strrchr(guard->seen_path, '/');
  if (look != LOOK_FOUND || !S_ISDIR(status.st_mode) || repository_system(slash ? slash + 1 : guard->seen_path)) return look;
  if ((size_t)snprintf(head, sizeof head, "%s%sHEAD", guard->seen_path, guard->seen_path[0] ? "/" : "") >= sizeof head) return LOOK_FAILED;
  return look_at(guard->seen_zone->fd, head, at, &status);
}

/* It was seen, and the sweep has not found it. */
static void on_seen(struct guard *guard) {
  char at[PATH_MAX];
  enum look look = look_at_seen(guard, at);
  struct guard_attempt *attempt = add_attempt(guard, guard->seen_zone, guard->seen_path);
  attempt->is_gone = look == LOOK_MISSING;
  attempt->is_unseen = look == LOOK_FAILED || look == LOOK_CLOSED;
}

unsigned guard_sweep(struct guard *guard, const char *run) {
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    if (zone->fd < 0) continue;
    sweep_repositories(guard, zone, run); /* first: a directory that names have moved would be found again */
    if (zone->names > 0) root_names_read(&zone->root, zone->fd);
    for (size_t name = 0; name < zone->names; name++)
      if (!root_names_lack(&zone->root, zone->name[name].path)) sweep_name(guard, zone, zone->name[name].path, run);
    for (size_t cover = 0; cover < zone->covers; cover++) sweep_cover(guard, zone, &zone->cover[cover], run);
  }
  if (guard->attempts == 0 && guard->seen_zone) on_seen(guard);
  return guard->attempts;
}
