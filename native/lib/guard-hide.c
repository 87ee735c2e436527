/* The guard's part of hidden files (lib/hide.h): covers that the stager fills with something empty. */
#include "lib/guard.h"

#include "lib/clock.h"
#include "lib/report-failure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lies_in_hidden(const struct guard_zone *zone, const char *path) {
  for (size_t i = 0; i < zone->covers; i++) {
    size_t length = strlen(zone->cover[i].path);
    if (zone->cover[i].hidden == HIDDEN_EMPTY && strncmp(zone->cover[i].path, path, length) == 0 && path[length] == '/') return 1;
  }
  return 0;
}

int guard_hide_fail(struct guard *guard, const struct guard_zone *zone, const char *path) {
  if (!guard->bare) guard->bare = errno ? errno : EIO, guard_fail(guard, zone, path);
  return -1;
}

/* While the command runs. */
static int hide_now(struct guard *guard, struct guard_zone *zone, const char *path, const struct stat *status) {
  struct guard_cover *cover = guard_hidden_at(zone, path);
  struct identity identity = {status->st_dev, status->st_ino};
  if (cover && guard_same_identity(&cover->identity, &identity)) return 0;
  if (guard->on_hidden(guard->of_hidden, zone, path, status->st_mode) < 0) return -1;
  if (!cover) return guard_hide_at(guard, zone, path, status);
  cover->identity = identity, cover->type = status->st_mode & S_IFMT;
  return 0;
}

/* Where nothing is mounted over a link, the command would read what it leads to. */
static int hide_end(struct guard *guard, const struct guard_zone *zone, const char *link) {
  char from[PATH_MAX], at[PATH_MAX];
  guard_host_path(zone, link, from, sizeof from);
  return guard_follow(guard, &(struct guard_lead){.from = "/", .text = from, .end = LEAD_HIDDEN, .base = ""}, at) < 0 ? -1 : 0;
}

/* While the command runs; the steps to it stay as they are. */
static int hide_end_now(struct guard *guard, struct guard_zone *zone, const char *link) {
  char path[PATH_MAX], real[PATH_MAX];
  struct stat status;
  guard_host_path(zone, link, path, sizeof path);
  if (!realpath(path, real) || lstat(real, &status) < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : guard_fail(guard, zone, link);
  for (size_t i = 0; i < guard->zones; i++) {
    const char *end = guard_below_any(&guard->zone[i], real);
    if (end && hide_now(guard, &guard->zone[i], end, &status) < 0) return -1;
  }
  return 0;
}

int guard_hide_find(struct guard *guard, struct guard_zone *zone, const struct find *find) {
  struct stat status = {.st_dev = find->identity.dev, .st_ino = find->identity.ino, .st_mode = find->type};
  if (S_ISLNK(find->type)) return hide_end(guard, zone, find->path);
  return lies_in_hidden(zone, find->path) ? 0 : guard_hide_at(guard, zone, find->path, &status);
}

/* ---- other names ---- */

static int find_twins(struct guard *guard, const struct guard_zone *zone, struct guard_links *twins) {
  for (size_t i = 0; i < zone->covers; i++)
    if (zone->cover[i].hidden == HIDDEN_EMPTY && guard_find_links(guard, twins, zone, &zone->cover[i]) < 0) return -1;
  return 0;
}

static int hide_twins_in(struct guard *guard, struct guard_zone *zone, const struct guard_links *twins) {
  struct walk walk = {.zone = zone->fd, .wanted = twins->file, .wanted_count = twins->count, .entries_max = WALK_ENTRIES_MAX};
  if (zone->fd < 0 || !zone->hide.patterns) return 0;
  int done = walk_zone(&walk);
  if (done < 0) guard_fail(guard, zone, errno == E2BIG ? "" : walk.at);
  for (size_t i = 0; done == 0 && i < walk.count; i++) done = guard_hide_find(guard, zone, &walk.find[i]);
  walk_free(&walk);
  return done;
}

int guard_hide_twins(struct guard *guard) {
  struct guard_links twins = {NULL, 0};
  int done = 0;
  for (size_t i = 0; i < guard->zones && done == 0; i++) done = find_twins(guard, &guard->zone[i], &twins);
  for (size_t i = 0; i < guard->zones && done == 0 && twins.count > 0; i++) done = hide_twins_in(guard, &guard->zone[i], &twins);
  free(twins.file);
  return done;
}

/* ---- while the command runs ---- */

static void hide_late(struct guard *guard, struct guard_zone *zone, const struct find *find) {
  struct stat status = {.st_dev = find->identity.dev, .st_ino = find->identity.ino, .st_mode = find->type};
  int done = 0;
  if (S_ISLNK(find->type)) done = hide_end_now(guard, zone, find->path);
  else if (!lies_in_hidden(zone, find->path)) done = hide_now(guard, zone, find->path, &status);
  if (done < 0) (void)guard_hide_fail(guard, zone, find->path);
}

/* Nothing can be hidden where the walk does not come. */
void guard_hide_late(struct guard *guard, struct guard_zone *zone, const struct walk *walk) {
  for (size_t i = 0; i < walk->count && zone->hide.patterns; i++)
    if (walk->find[i].kind == FIND_HIDDEN) hide_late(guard, zone, &walk->find[i]);
    else if (walk->find[i].kind == FIND_TOO_DEEP) errno = ENAMETOOLONG, (void)guard_hide_fail(guard, zone, walk->find[i].path);
}

void guard_hide_entry(struct guard *guard, struct guard_zone *zone, const char *directory, const char *name) {
  char path[PATH_MAX], at[PATH_MAX];
  struct stat status;
  if (!zone->hide.patterns || !hide_matches(&zone->hide, directory, name, 1)) return;
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", directory, directory[0] ? "/" : "", name) >= sizeof path) return errno = ENAMETOOLONG, (void)guard_hide_fail(guard, zone, directory);
  enum look look = look_at(zone->fd, path, at, &status);
  if (look == LOOK_FAILED) (void)guard_hide_fail(guard, zone, path);
  if ((look != LOOK_FOUND && look != LOOK_LINK) || !hide_matches(&zone->hide, directory, name, S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode))) return;
  struct find find = {.kind = FIND_HIDDEN, .type = status.st_mode & S_IFMT, .identity = {status.st_dev, status.st_ino}, .path = path};
  hide_late(guard, zone, &find);
}

void guard_hide_below(struct guard *guard, struct guard_zone *zone, const char *directory) {
  struct walk walk = {.zone = zone->fd, .start = directory, .hide = &zone->hide};
  if (!zone->hide.patterns) return;
  (void)walk_some(&walk, now_ns() + 5000000ull); /* the rest is found by the next walk of the zone */
  guard_hide_late(guard, zone, &walk);
  walk_free(&walk);
}
