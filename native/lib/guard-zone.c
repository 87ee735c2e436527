/* The zones of the guard: covers, names, leads and repositories. */
#include "lib/guard.h"

#include "lib/report-failure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

void guard_host_path(const struct guard_zone *zone, const char *path, char *to, size_t room) {
  copy_text(to, room, zone->source);
  size_t used = strlen(to);
  if (path[0] && used + 1 < room) to[used++] = '/';
  copy_text(to + used, room - used, path);
}

int guard_fail(struct guard *guard, const struct guard_zone *zone, const char *path) {
  guard_host_path(zone, path, guard->failed, sizeof guard->failed);
  return -1;
}

static const char *last_word(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

enum look guard_look_at_name(const struct guard_zone *zone, const char *path, char *at) {
  struct stat status;
  enum look look = look_at(zone->fd, path, at, &status);
  const struct repository_system *system = look == LOOK_FOUND ? repository_system(last_word(path)) : NULL;
  return system && !repository_uses(system, &status) ? LOOK_MISSING : look;
}

static int is_cover(const struct guard_cover *cover, const struct stat *status) {
  struct identity now = {status->st_dev, status->st_ino};
  return guard_same_identity(&cover->identity, &now) && cover->type == (status->st_mode & S_IFMT);
}

enum look guard_look_at_cover(const struct guard_zone *zone, const struct guard_cover *cover, char *at) {
  struct stat status;
  if (cover->is_way || (fstatat(zone->fd, cover->path, &status, AT_SYMLINK_NOFOLLOW) == 0 && is_cover(cover, &status))) return LOOK_MISSING;
  enum look look = look_at(zone->fd, cover->path, at, &status);
  return (look == LOOK_FOUND || look == LOOK_LINK) && is_cover(cover, &status) ? LOOK_MISSING : look;
}

int guard_add_cover(struct guard_zone *zone, const char *path, const struct stat *status, int writable) {
  struct guard_cover cover = {
      .path = path, .writable = writable, .identity = {status->st_dev, status->st_ino}, .type = status->st_mode & S_IFMT};
  return path ? append(zone->cover, zone->covers, &cover) : -1;
}

int guard_add_name(struct guard_zone *zone, const char *path) {
  return path ? append(zone->name, zone->names, &(struct guard_name){path}) : -1;
}

int guard_has_word(const char *words, const char *name) {
  size_t length = strlen(name);
  for (const char *at = words; *at;) {
    size_t word = strcspn(at, " ");
    if (word == length && memcmp(at, name, length) == 0) return 1;
    at += word + (at[word] == ' ');
  }
  return 0;
}

int guard_is_open(const struct guard_zone *zone, const char *name) { return guard_has_word(zone->open, name); }

int guard_has(const struct guard_zone *zone, const char *system) { return zone->has_git && !guard_is_open(zone, system); }

const struct repository_system *guard_system_of(const struct find *find) {
  const struct repository_system *system = find->kind == FIND_NAMED ? repository_system(last_word(find->path)) : NULL;
  return system ? system : &REPOSITORY_SYSTEM[0]; /* any name is git's alone */
}

/* The innermost cover decides. */
int guard_is_covered(const struct guard_zone *zone, const char *path) {
  size_t longest = 0;
  int covered = 0;
  for (size_t i = 0; i < zone->covers; i++) {
    size_t length = strlen(zone->cover[i].path);
    if (length < longest || strncmp(zone->cover[i].path, path, length) != 0 || (path[length] && path[length] != '/')) continue;
    covered = !zone->cover[i].writable || (covered && length == longest);
    longest = length;
  }
  return covered;
}

const char *guard_below(const struct guard_zone *zone, const char *path) {
  size_t length = strcmp(zone->source, "/") == 0 ? 0 : strlen(zone->source);
  if (zone->fd < 0 || zone->only_hides || strncmp(path, zone->source, length) != 0 || (path[length] && path[length] != '/')) return NULL;
  return path[length] ? path + length + 1 : path + length;
}

static int is_kept_path(const struct guard_zone *zone, const char *path) {
  for (size_t i = 0; i < zone->covers; i++)
    if (strcmp(zone->cover[i].path, path) == 0) return 1;
  return guard_is_covered(zone, path);
}

static int add_covers(struct guard *guard, const char *path, const struct stat *status, int is_way) {
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    const char *below = guard_below(zone, path);
    if (!below || !below[0] || (is_way ? is_kept_path : guard_is_covered)(zone, below)) continue;
    if (guard_add_cover(zone, arena_copy(&guard->arena, below, strlen(below)), status, is_way) < 0) return guard_fail(guard, zone, below);
    zone->cover[zone->covers - 1].is_way = is_way;
  }
  return 0;
}

int guard_cover_path(struct guard *guard, const char *path, const struct stat *status) { return add_covers(guard, path, status, 0); }

int guard_keep_path(struct guard *guard, const char *path, const struct stat *status) { return add_covers(guard, path, status, 1); }

static int has_name(const struct guard_zone *zone, const char *path) {
  for (size_t i = 0; i < zone->names; i++)
    if (strcmp(zone->name[i].path, path) == 0) return 1;
  return 0;
}

int guard_watch_name(struct guard *guard, const char *path) {
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    const char *below = guard_below(zone, path);
    if (!below || !below[0] || guard_is_covered(zone, below) || has_name(zone, below)) continue;
    if (guard_add_name(zone, arena_copy(&guard->arena, below, strlen(below))) < 0) return guard_fail(guard, zone, below);
  }
  return 0;
}

/* More is not what people have written. */
#define LEADS_MAX (1 << 14)

static int has_lead(const struct guard *guard, const struct guard_lead *lead) {
  for (size_t i = 0; i < guard->leads; i++) {
    const struct guard_lead *known = &guard->lead[i];
    if (known->end == lead->end && strcmp(known->text, lead->text) == 0 && strcmp(known->from, lead->from) == 0 && strcmp(known->base, lead->base) == 0) return 1;
  }
  return 0;
}

int guard_add_lead(struct guard *guard, const struct guard_lead *lead) {
  struct guard_lead copy = *lead;
  if (!copy.base) copy.base = "";
  copy_text(guard->failed, sizeof guard->failed, copy.from);
  if (!copy.text || has_lead(guard, &copy)) return copy.text ? 0 : -1;
  if (guard->leads == LEADS_MAX) return errno = E2BIG, -1;
  copy.from = arena_copy(&guard->arena, copy.from, strlen(copy.from));
  copy.text = arena_copy(&guard->arena, copy.text, strlen(copy.text));
  copy.base = arena_copy(&guard->arena, copy.base, strlen(copy.base));
  return copy.from && copy.text && copy.base ? append(guard->lead, guard->leads, &copy) : -1;
}

int guard_same_identity(const struct identity *a, const struct identity *b) { return a->dev == b->dev && a->ino == b->ino; }

static int knows(const struct guard_zone *zone, const struct find *find) {
  for (size_t i = 0; i < zone->repositories; i++) {
    const struct guard_repository *known = &zone->repository[i];
    if (strcmp(known->path, find->path) == 0) return known->type == find->type && guard_same_identity(&known->identity, &find->identity);
  }
  return 0;
}

int guard_is_new(const struct guard_zone *zone, const struct find *find) { return guard_has(zone, guard_system_of(find)->name) && !knows(zone, find); }

/* ---- hidden files ---- */

const char *guard_below_any(const struct guard_zone *zone, const char *path) {
  size_t length = strcmp(zone->source, "/") == 0 ? 0 : strlen(zone->source);
  if (zone->fd < 0 || !zone->hide.patterns || strncmp(path, zone->source, length) != 0 || path[length] != '/') return NULL;
  return path + length + 1;
}

struct guard_cover *guard_hidden_at(struct guard_zone *zone, const char *path) {
  for (size_t i = 0; i < zone->covers; i++)
    if (zone->cover[i].hidden == HIDDEN_EMPTY && strcmp(zone->cover[i].path, path) == 0) return &zone->cover[i];
  return NULL;
}

static void note_hidden(struct guard *guard, const struct guard_zone *zone, const char *path) {
  if (guard->hidden < GUARD_HIDDEN_MAX) guard_host_path(zone, path, guard->hidden_path[guard->hidden], sizeof guard->hidden_path[0]);
  guard->hidden++;
}

/* A directory that the command renames takes what is hidden in it along. */
static int is_counted(const struct guard_zone *zone, const struct guard_cover *cover) {
  for (size_t i = 0; &zone->cover[i] != cover; i++)
    if (zone->cover[i].hidden == HIDDEN_EMPTY && guard_same_identity(&zone->cover[i].identity, &cover->identity)) return 1;
  return 0;
}

int guard_hide_at(struct guard *guard, struct guard_zone *zone, const char *path, const struct stat *status) {
  if (guard_hidden_at(zone, path)) return 0;
  if (guard_add_cover(zone, arena_copy(&guard->arena, path, strlen(path)), status, 0) < 0) return guard_fail(guard, zone, path);
  zone->cover[zone->covers - 1].hidden = HIDDEN_EMPTY;
  if (!guard->on_hidden || !is_counted(zone, &zone->cover[zone->covers - 1])) note_hidden(guard, zone, path);
  return 0;
}

static int keep_step(struct guard *guard, struct guard_zone *zone, const char *path, const struct stat *status) {
  if (guard_add_cover(zone, arena_copy(&guard->arena, path, strlen(path)), status, 1) < 0) return guard_fail(guard, zone, path);
  zone->cover[zone->covers - 1].hidden = HIDDEN_STEP;
  return 0;
}

int guard_hide_path(struct guard *guard, const char *path, const struct stat *status, enum hidden hidden) {
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    const char *end = guard_below_any(zone, path);
    if (end && (hidden == HIDDEN_STEP ? keep_step : guard_hide_at)(guard, zone, end, status) < 0) return -1;
  }
  return 0;
}

/* ---- other names of files ---- */

static int add_link(struct guard_links *links, dev_t dev, ino_t ino) {
  for (size_t i = 0; i < links->count; i++)
    if (links->file[i].dev == dev && links->file[i].ino == ino) return 0;
  return append(links->file, links->count, &((struct identity){dev, ino}));
}

static int add_links_below(struct guard *guard, struct guard_links *links, const struct guard_zone *zone, const struct guard_cover *cover) {
  struct walk walk = {.zone = zone->fd, .start = cover->path, .for_linked = 1, .for_links = !cover->hidden,
                      .entries_max = guard->for_layers ? 0 : WALK_ENTRIES_MAX};
  int done = walk_zone(&walk);
  if (done < 0) guard_fail(guard, zone, cover->path);
  for (size_t i = 0; done == 0 && i < walk.count; i++) {
    const struct find *find = &walk.find[i];
    /* Not the objects of a repository that stays writable in it: git removes those that it has packed, and a clone shares them. */
    if (find->kind == FIND_TWIN && (cover->hidden || guard_is_covered(zone, find->path))) done = add_link(links, find->identity.dev, find->identity.ino);
    if (find->kind == FIND_LINK) done = guard_add_lead(guard, &(struct guard_lead){.from = zone->source, .text = find->path, .end = LEAD_INNER});
  }
  walk_free(&walk);
  return done;
}

int guard_find_links(struct guard *guard, struct guard_links *links, const struct guard_zone *zone, const struct guard_cover *cover) {
  char at[PATH_MAX];
  struct stat status;
  if (S_ISDIR(cover->type)) return add_links_below(guard, links, zone, cover);
  enum look look = look_at(zone->fd, cover->path, at, &status);
  if (look == LOOK_FAILED) return guard_fail(guard, zone, cover->path);
  if (look != LOOK_FOUND || status.st_nlink < 2) return 0; /* exchanged meanwhile: the stager compares what it covers */
  return add_link(links, status.st_dev, status.st_ino);
}
