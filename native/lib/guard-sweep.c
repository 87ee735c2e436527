/* The end of the guard: what was made in spite of its protection is set aside. */
#include "lib/guard.h"

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
  int done = directory < 0 ? -1 : rename_beside(directory, name, run, aside), error = errno;
  if (directory >= 0) close(directory);
  errno = error;
  return done;
}

/* 1 = it is gone: its maker removed it again. */
static int set_aside(int zone, const char *path, const char *run, char aside[NAME_MAX + 1]) {
  struct unlocked unlocked = {.count = 0};
  int done = try_aside(zone, path, run, aside);
  if (done < 0 && errno == EACCES && unlock_way(&unlocked, zone, path, 0700)) done = try_aside(zone, path, run, aside);
  int error = errno;
  unlock_end(&unlocked);
  return done == 0 ? 0 : error == ENOENT || error == ENOTDIR ? 1 : -1;
}

static void on_attempt(struct guard *guard, const struct guard_zone *zone, const char *path, const char *run) {
  char aside[NAME_MAX + 1] = "";
  int done = run ? set_aside(zone->fd, path, run, aside) : -1;
  if (done > 0) return;
  if (guard->attempts < GUARD_ATTEMPTS_MAX) {
    struct guard_attempt *attempt = &guard->attempt[guard->attempts];
    guard_host_path(zone, path, attempt->path, sizeof attempt->path);
    copy_text(attempt->aside, sizeof attempt->aside, done == 0 ? aside : "");
  }
  guard->attempts++;
}

static enum lookup lookup_unlocked(const struct guard_zone *zone, const char *path, char *at) {
  struct unlocked unlocked = {.count = 0};
  struct stat status;
  enum lookup lookup = guard_lookup(zone->fd, path, at, &status);
  if (lookup == LOOKUP_FAILED && errno == EACCES && unlock_way(&unlocked, zone->fd, path, 0100)) lookup = guard_lookup(zone->fd, path, at, &status);
  unlock_end(&unlocked);
  return lookup;
}

static void sweep_names(struct guard *guard, const struct guard_zone *zone, const char *run) {
  char at[PATH_MAX];
  for (size_t i = 0; i < zone->names; i++) {
    enum lookup lookup = lookup_unlocked(zone, zone->name[i].path, at);
    if (lookup == LOOKUP_FOUND || lookup == LOOKUP_LINK) on_attempt(guard, zone, at, run);
    /* A command that cannot enter another user's directory cannot have made anything in it. */
    if (lookup == LOOKUP_FAILED && errno != EACCES) on_attempt(guard, zone, zone->name[i].path, NULL);
  }
}

/* Without its HEAD nothing is a repository, and the directory stays where it is: it may be the zone's root. */
static void sweep_find(struct guard *guard, const struct guard_zone *zone, const struct find *find, const char *run) {
  char head[PATH_MAX];
  if (find->kind == FIND_TOO_DEEP) return on_attempt(guard, zone, find->path, NULL);
  if (find->kind == FIND_GIT) return on_attempt(guard, zone, find->path, run);
  int length = snprintf(head, sizeof head, "%s%sHEAD", find->path, find->path[0] ? "/" : "");
  on_attempt(guard, zone, head, (size_t)length < sizeof head ? run : NULL);
}

static void sweep_repositories(struct guard *guard, const struct guard_zone *zone, const char *run) {
  struct walk walk;
  if (!zone->has_git) return;
  if (guard_walk(zone, 0, &walk) < 0) on_attempt(guard, zone, walk.failed ? walk.failed : "", NULL);
  for (size_t i = 0; i < walk.count; i++)
    if (!guard_knows(zone, &walk.find[i])) sweep_find(guard, zone, &walk.find[i], run);
  walk_free(&walk);
}

/* It was seen, and its maker removed it before the end. */
static void on_gone(struct guard *guard) {
  struct guard_attempt *attempt = &guard->attempt[guard->attempts++];
  copy_text(attempt->path, sizeof attempt->path, guard->seen);
  attempt->is_gone = 1;
}

unsigned guard_sweep(struct guard *guard, const char *run) {
  for (size_t i = 0; i < guard->zones; i++) {
    const struct guard_zone *zone = &guard->zone[i];
    if (zone->fd < 0) continue;
    sweep_repositories(guard, zone, run); /* first: a directory that names have moved would be found again */
    sweep_names(guard, zone, run);
  }
  if (guard->attempts == 0 && guard->seen[0]) on_gone(guard);
  return guard->attempts;
}
