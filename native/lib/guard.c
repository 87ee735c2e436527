#include "lib/guard.h"

#include "lib/files.h"
#include "lib/layer.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* ---- what is to be done about each path ---- */

/* Covers what is there, and watches what is not. */
static int close_path(struct guard *guard, struct guard_zone *zone, const char *path) {
  char at[PATH_MAX];
  struct stat status;
  if (!path) return guard_fail(guard, zone, "");
  switch (root_names_lack(&zone->root, path) ? LOOK_MISSING : look_at(zone->fd, path, at, &status)) {
    case LOOK_FOUND: return guard_add_cover(zone, path, &status, 0) < 0 ? guard_fail(guard, zone, path) : 1;
    case LOOK_MISSING: return guard_add_name(zone, path) < 0 ? guard_fail(guard, zone, path) : 0;
    case LOOK_LINK: return guard_add_lead(guard, &(struct guard_lead){.from = zone->source, .text = path, .end = LEAD_PATH});
    case LOOK_CLOSED: return 0;
    case LOOK_FAILED: return guard_fail(guard, zone, path);
  }
  return -1;
}

/* ---- repositories ---- */

static int cover_kept(struct guard *guard, struct guard_zone *zone, const struct walk *walk, int owner, const char *directory) {
  size_t length = strlen(directory), holder = zone->covers - 1;
  for (size_t i = 0; i < walk->count; i++) {
    const struct find *find = &walk->find[i];
    if (find->kind != FIND_KEPT || find->owner != owner) continue;
    if (strncmp(find->path, directory, length) != 0 || find->path[length] != '/') continue;
    struct stat status = {.st_dev = find->identity.dev, .st_ino = find->identity.ino, .st_mode = find->type};
    if (guard_add_cover(zone, arena_copy(&guard->arena, find->path, strlen(find->path)), &status, 1) < 0) return guard_fail(guard, zone, find->path);
    zone->cover[holder].kept++;
  }
  return 0;
}

/* Whether cover_kept has it: it does not cover what is in an open directory. */
static int is_kept(const struct guard_zone *zone, const struct walk *walk, const struct find *find) {
  if (find->kind != FIND_KEPT) return 0;
  size_t length = strlen(walk->find[find->owner].path);
  for (const char *const *name = REPOSITORY_SYSTEM[0].kept; *name; name++)
    if (strncmp(find->path + length + (length > 0), *name, strlen(*name)) == 0) return !guard_is_open(zone, *name);
  return 0;
}

/* It may be missing, and then it is watched. */
static int pin(struct guard *guard, struct guard_zone *zone, const char *path) {
  int done = close_path(guard, zone, path);
  if (done > 0) zone->cover[zone->covers - 1].writable = S_ISDIR(zone->cover[zone->covers - 1].type);
  return done;
}

/* Of the find at `index`, which is a directory. */
static int close_directory(struct guard *guard, struct guard_zone *zone, const struct walk *walk, int index) {
  const char *directory = walk->find[index].path;
  const struct repository_system *system = guard_system_of(&walk->find[index]);
  for (const char *const *name = system->pinned; *name; name++)
    if (pin(guard, zone, arena_join(&guard->arena, directory, *name)) < 0) return -1;
  for (const char *const *name = system->closed; *name; name++)
    if (!guard_is_open(zone, *name) && close_path(guard, zone, arena_join(&guard->arena, directory, *name)) < 0) return -1;
  for (const char *const *name = system->kept; *name; name++) {
    if (guard_is_open(zone, *name)) continue;
    char *path = arena_join(&guard->arena, directory, *name);
    int done = close_path(guard, zone, path);
    if (done > 0) done = cover_kept(guard, zone, walk, index, path);
    if (done < 0) return -1;
  }
  return 0;
}

/*
 * The link stays what it is. A directory that it leads to is found wherever it lies in a zone when it is a repository of any name; what is
 * closed in it is followed by its names all the same, as git and others reach it.
 */
static int close_linked(struct guard *guard, struct guard_zone *zone, const struct walk *walk, int index) {
  const char *link = walk->find[index].path;
  if (guard_add_lead(guard, &(struct guard_lead){.from = zone->source, .text = link, .end = LEAD_LINK}) < 0) return -1;
  return close_directory(guard, zone, walk, index);
}

/* Of Mercurial and Jujutsu, `path` is their directory. What their other files say is a path at most. */
static int add_hgrcs(struct guard *guard, const struct repository_system *system, char *path) {
  char *base = arena_copy(&guard->arena, path, strlen(path) - strlen(system->name) - 1);
  for (const char *const *name = system->closed; base && *name; name++) {
    const char *file = arena_join(&guard->arena, path, *name);
    if (!file || guard_add_hgrc(guard, file, base) < 0) return -1;
  }
  return base ? 0 : -1;
}

/* They name programs and further files. */
static int add_configs(struct guard *guard, const struct guard_zone *zone, const struct find *find) {
  char path[PATH_MAX];
  int is_git = guard_system_of(find) == &REPOSITORY_SYSTEM[0];
  if (find->kind == FIND_KEPT || (is_git && guard_is_open(zone, "config"))) return 0;
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", strcmp(zone->source, "/") == 0 ? "" : zone->source, find->path[0] ? "/" : "", find->path) >= sizeof path)
    return errno = ENAMETOOLONG, guard_fail(guard, zone, find->path);
  if (!is_git) return S_ISREG(find->type) ? 0 : add_hgrcs(guard, guard_system_of(find), path);
  return guard_add_configs(guard, path, find->kind, find->type);
}

static int add_repository(struct guard *guard, struct guard_zone *zone, const struct find *find, const char *path) {
  struct guard_repository repository = {find->kind, find->type, find->identity, path};
  return path && append(zone->repository, zone->repositories, &repository) == 0 ? 0 : guard_fail(guard, zone, find->path);
}

static int close_repository(struct guard *guard, struct guard_zone *zone, struct walk *walk, int index) {
  struct find *find = &walk->find[index];
  if (!guard_has(zone, guard_system_of(find)->name)) return 0;
  struct stat status = {.st_dev = find->identity.dev, .st_ino = find->identity.ino, .st_mode = find->type};
  find->path = arena_copy(&guard->arena, find->path, strlen(find->path));
  if (add_repository(guard, zone, find, find->path) < 0) return -1;
  if (add_configs(guard, zone, find) < 0) return -1;
  if (S_ISLNK(find->type)) return close_linked(guard, zone, walk, index);
  /* A file `.git` points to another git directory; a directory is kept where it is, its parts are closed one by one. */
  if (!is_kept(zone, walk, find) && find->path[0] && guard_add_cover(zone, find->path, &status, S_ISDIR(find->type)) < 0) return guard_fail(guard, zone, find->path);
  return S_ISDIR(find->type) ? close_directory(guard, zone, walk, index) : 0;
}

/* ---- single files ---- */

static void note_set_id(struct guard *guard, const struct guard_zone *zone, const char *path) {
  if (guard->set_ids < GUARD_SET_ID_MAX)
    guard_host_path(zone, path, guard->set_id[guard->set_ids], sizeof guard->set_id[0]);
  guard->set_ids++;
}

static int close_file(struct guard *guard, struct guard_zone *zone, const struct find *find) {
  struct stat status = {.st_dev = find->identity.dev, .st_ino = find->identity.ino, .st_mode = find->type};
  if (find->kind == FIND_SET_ID) note_set_id(guard, zone, find->path);
  return guard_add_cover(zone, arena_copy(&guard->arena, find->path, strlen(find->path)), &status, 0) < 0 ? guard_fail(guard, zone, find->path) : 0;
}

/* ---- a zone ---- */

/* Among other files it is covered; for a zone that is this one file nothing else is done. */
static int runs_with_other_rights(int file, const struct stat *status) {
  return (status->st_mode & (S_ISUID | S_ISGID)) || walk_has_capabilities(getxattr(fd_path(file).text, "security.capability", NULL, 0));
}

static int open_zone(struct guard *guard, struct guard_zone *zone, const struct entry *entry) {
  uint64_t device, inode;
  struct stat status;
  errno = EINVAL;
  zone->fd = -1;
  if (parse_number(entry->word[3], UINT64_MAX, &device) < 0 || parse_number(entry->word[4], UINT64_MAX, &inode) < 0)
    return guard_fail(guard, zone, "");
  zone->fd = sys_openat2(AT_FDCWD, zone->source, O_PATH, NO_LINKS);
  if (zone->fd < 0 || fstat(zone->fd, &status) < 0) return guard_fail(guard, zone, "");
  if (status.st_dev != device || status.st_ino != inode) return errno = ESTALE, guard_fail(guard, zone, "");
  if (hide_holds(&zone->hide, S_ISDIR(status.st_mode))) return errno = ENODATA, guard_fail(guard, zone, "");
  if (S_ISDIR(status.st_mode)) return zone->only_hides ? 0 : root_names_read(&zone->root, zone->fd), 0;
  int is_safe = zone->only_hides || geteuid() != 0 || !runs_with_other_rights(zone->fd, &status);
  close(zone->fd); /* a single file: nothing can be made in it */
  zone->fd = -1;
  return is_safe ? 0 : (errno = EPERM, guard_fail(guard, zone, ""));
}

static int close_finds(struct guard *guard, struct guard_zone *zone, struct walk *walk) {
  for (size_t i = 0; i < walk->count; i++) {
    enum find_kind kind = walk->find[i].kind;
    if (guard->for_layers && kind == FIND_TOO_DEEP) continue; /* git does not come there either */
    int done = kind == FIND_HIDDEN                                        ? guard_hide_find(guard, zone, &walk->find[i])
               : kind == FIND_NAMED || kind == FIND_BARE || kind == FIND_KEPT ? close_repository(guard, zone, walk, (int)i)
               : kind == FIND_SET_ID                                      ? close_file(guard, zone, &walk->find[i])
                                                                          : (errno = ENAMETOOLONG, guard_fail(guard, zone, ""));
    if (done < 0) return -1;
  }
  return 0;
}

/* At the root they are made most often, and a name is watched. */
static int watch_root(struct guard *guard, struct guard_zone *zone) {
  char at[PATH_MAX];
  struct stat status;
  for (int i = 0; i < REPOSITORY_SYSTEMS; i++) {
    const struct repository_system *system = &REPOSITORY_SYSTEM[i];
    if (!guard_has(zone, system->name)) continue;
    enum look look = look_at(zone->fd, system->name, at, &status);
    if (look == LOOK_FAILED || (look == LOOK_MISSING && guard_add_name(zone, system->name) < 0)) return guard_fail(guard, zone, system->name);
  }
  return 0;
}

/* A walk that has found too much names the zone: what it was at by then is where it is by chance. */
static int mark_unwalked(struct guard *guard, const struct guard_zone *zone, const struct walk *walk) {
  return guard_fail(guard, zone, errno == E2BIG ? "" : walk->at);
}

static int look_through(struct guard *guard, struct guard_zone *zone) {
  int sets_ids = geteuid() == 0 && !guard->for_layers && !zone->only_hides;
  struct walk walk = {.zone = zone->fd, .for_git = zone->has_git, .for_empty = 1, .for_set_id = sets_ids, .hide = zone->hide.patterns ? &zone->hide : NULL, .for_names = guard->for_layers,
                      .entries_max = guard->for_layers ? 0 : WALK_ENTRIES_MAX, .known = &zone->tree, .records = (zone->has_git || zone->hide.patterns) && !guard->for_layers};
  if (walk.records && guard->runs) tree_read(&zone->tree, zone->fd, hide_sum(walk.hide), guard->runs);
  zone->was_kept = zone->tree.bytes != NULL;
  int done = !walk.for_git && !walk.for_set_id && !walk.hide ? 0 : walk_zone(&walk) < 0 ? mark_unwalked(guard, zone, &walk) : close_finds(guard, zone, &walk);
  int error = errno;
  zone->listed = walk.listed;
  if (walk.records && walk.listed > 0) walk_take_index(&walk, &zone->tree), zone->same = tree_just_listed(&zone->tree);
  else zone->same = walk.same, walk.same = NULL;
  walk_free(&walk);
  errno = error;
  return done < 0 ? -1 : watch_root(guard, zone);
}

/* ---- leads ---- */

/* A configuration adds to them while they are followed. */
static int follow_leads(struct guard *guard, size_t *followed) {
  char at[PATH_MAX];
  while (*followed < guard->leads) {
    struct guard_lead lead = guard->lead[(*followed)++];
    int done = guard_follow(guard, &lead, at);
    if (done > 0 && lead.end == LEAD_CONFIG) done = guard_read_config(guard, at, lead.base);
    if (done > 0 && lead.end == LEAD_HGRC) done = guard_read_hgrc(guard, at, lead.base);
    if (done < 0) return -1;
  }
  return 0;
}

/* ---- links ---- */

static int cover_links(struct guard *guard, struct guard_zone *zone, const struct guard_links *links) {
  struct walk walk = {.zone = zone->fd, .wanted = links->file, .wanted_count = links->count, .entries_max = WALK_ENTRIES_MAX, .known = &zone->tree, .same = zone->same};
  zone->same = NULL;
  int done = walk_zone(&walk);
  if (done < 0) mark_unwalked(guard, zone, &walk);
  for (size_t i = 0; done == 0 && i < walk.count; i++)
    if (walk.find[i].kind == FIND_TWIN && !guard_is_covered(zone, walk.find[i].path)) done = close_file(guard, zone, &walk.find[i]);
  walk_free(&walk);
  return done;
}

/* Files that lie outside of every writable zone. */
static int add_links_of_plan(struct guard *guard, struct guard_links *links, const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  uint64_t device, inode;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb != V_LINKED) continue;
    copy_text(guard->failed, sizeof guard->failed, "linked");
    errno = EINVAL;
    if (parse_number(entry.word[0], UINT64_MAX, &device) < 0 || parse_number(entry.word[1], UINT64_MAX, &inode) < 0) return -1;
    if (append(links->file, links->count, &((struct identity){(dev_t)device, (ino_t)inode})) < 0) return -1;
  }
  return 0;
}

/* Zones may share a directory: a name at the root of one is an ordinary file of another. */
static int cover_everywhere(struct guard *guard, const struct guard_zone *zone, const struct guard_cover *cover) {
  char path[PATH_MAX];
  struct stat status = {.st_dev = cover->identity.dev, .st_ino = cover->identity.ino, .st_mode = cover->type};
  if (guard->zones < 2) return 0;
  guard_host_path(zone, cover->path, path, sizeof path);
  return cover->writable ? guard_keep_path(guard, path, &status) : guard_cover_path(guard, path, &status);
}

/* In the covers that have come since the last time. */
static int find_links(struct guard *guard, struct guard_links *links) {
  for (size_t i = 0; i < guard->zones; i++)
    for (struct guard_zone *zone = &guard->zone[i]; zone->searched < zone->covers;) {
      const struct guard_cover cover = zone->cover[zone->searched++];
      if (cover.hidden) continue;
      int is_closed = !cover.writable && (S_ISDIR(cover.type) || S_ISREG(cover.type));
      if (is_closed && guard_find_links(guard, links, zone, &cover) < 0) return -1;
      if (cover_everywhere(guard, zone, &cover) < 0) return -1;
    }
  return 0;
}

/* Following a lead can close another directory, whose links are leads again: go on until nothing new is found. */
static int close_leads(struct guard *guard, struct guard_links *links) {
  for (size_t followed = 0; find_links(guard, links) == 0;) {
    if (followed == guard->leads) return 0;
    if (follow_leads(guard, &followed) < 0) return -1;
  }
  return -1;
}

/* Steps in a directory that was closed after them. */
static void close_ways(struct guard_zone *zone) {
  for (size_t i = 0; i < zone->covers; i++) {
    size_t longest = 0;
    for (size_t j = 0; j < zone->covers && zone->cover[i].is_way; j++) {
      const struct guard_cover *above = &zone->cover[j];
      size_t length = strlen(above->path);
      if (above->is_way || length <= longest || strncmp(zone->cover[i].path, above->path, length) != 0 || zone->cover[i].path[length] != '/') continue;
      zone->cover[i].writable = above->writable;
      longest = length;
    }
  }
}

static int close_links(struct guard *guard, const struct launchfile *file) {
  struct guard_links links = {NULL, 0};
  int done = add_links_of_plan(guard, &links, file);
  if (done == 0) done = close_leads(guard, &links);
  for (size_t i = 0; i < guard->zones; i++) close_ways(&guard->zone[i]);
  for (size_t i = 0; links.count > 0 && !guard->for_layers && i < guard->zones && done == 0; i++)
    if (guard->zone[i].fd >= 0 && !guard->zone[i].only_hides) done = cover_links(guard, &guard->zone[i], &links);
  free(links.file);
  return done;
}

/* ---- all zones ---- */

static struct guard_zone *add_zone(struct guard *guard, const struct entry *entry) {
  struct guard_zone zone = {.source = entry->word[0], .target = entry->word[1], .fd = -1, .open = ""};
  return append(guard->zone, guard->zones, &zone) < 0 ? NULL : &guard->zone[guard->zones - 1];
}

static int is_of(const struct guard_zone *zone, const struct entry *entry) {
  return strcmp(zone->source, entry->word[0]) == 0 && strcmp(zone->target, entry->word[1]) == 0;
}

/* A zone that a command cannot write to is only looked through for what is hidden in it. */
static int begin_zone(struct guard *guard, const struct launchfile *file, const struct entry *entry, int is_own) {
  struct hide hide = {0};
  if (!guard->for_layers && hide_read(&hide, file, entry) < 0) return hide_free(&hide), -1;
  if (!is_own && hide.patterns == 0) return 0;
  struct guard_zone *zone = add_zone(guard, entry);
  if (!zone) return hide_free(&hide), -1;
  zone->hide = hide;
  zone->only_hides = !is_own;
  zone->is_writable = strcmp(entry->word[2], "ro") != 0;
  return open_zone(guard, zone, entry);
}

/* The zone of entries that are not this guard's: in a copy-on-write zone a command may do anything, and apply asks about it later. */
static struct guard_zone LAYERED;

static int is_own_zone(const struct guard *guard, const struct entry *entry) {
  return guard->for_layers ? is_layered(entry) : strcmp(entry->word[2], "rw") == 0;
}

static int on_record(struct guard *guard, const struct launchfile *file, struct guard_zone **zone, const struct entry *entry) {
  if (entry->verb == V_ZONE) {
    int is_own = is_own_zone(guard, entry), done = begin_zone(guard, file, entry, is_own);
    *zone = done < 0 ? NULL : is_own ? &guard->zone[guard->zones - 1] : is_layered(entry) ? &LAYERED : NULL;
    return done;
  }
  if (entry->verb != V_PROTECT && entry->verb != V_GIT && entry->verb != V_HOME) return 0;
  if (*zone == &LAYERED) return 0;
  if (entry->verb == V_HOME) return guard->home = entry->word[0], guard->home_names = entry->word[1], 0;
  copy_text(guard->failed, sizeof guard->failed, entry->word[0]);
  if (!*zone || !is_of(*zone, entry)) return errno = EINVAL, -1; /* the paths of a zone stand behind it */
  if (entry->verb == V_GIT) return (*zone)->has_git = 1, (*zone)->open = entry->word[2], 0;
  return (*zone)->fd < 0 || close_path(guard, *zone, entry->word[2]) >= 0 ? 0 : -1;
}

static int prepare(struct guard *guard, const struct launchfile *file) {
  struct entry entry;
  if (launchfile_find(file, V_RUNS, &entry)) guard->runs = entry.word[0];
  struct guard_zone *zone = NULL;
  struct entry last = {.word = {"", ""}};
  size_t position = 0;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb == V_ZONE) last = entry;
    if (entry.verb == V_HIDE && !is_of(&(struct guard_zone){.source = last.word[0], .target = last.word[1]}, &entry)) return errno = EINVAL, -1; /* hide_read */
    if (on_record(guard, file, &zone, &entry) < 0) return -1;
  }
  for (size_t i = 0; i < guard->zones; i++)
    if (guard->zone[i].fd >= 0 && look_through(guard, &guard->zone[i]) < 0) return -1;
  return guard_add_home(guard) < 0 || close_links(guard, file) < 0 ? -1 : guard_hide_twins(guard);
}

int guard_prepare(struct guard *guard, const struct launchfile *file) {
  guard_clear(guard);
  return prepare(guard, file);
}

int guard_prepare_layers(struct guard *guard, const struct launchfile *file) {
  guard_clear(guard);
  guard->for_layers = 1;
  return prepare(guard, file);
}

const struct guard_zone *guard_zone_at(const struct guard *guard, const char *target) {
  for (size_t i = 0; i < guard->zones; i++)
    if (strcmp(guard->zone[i].target, target) == 0) return &guard->zone[i];
  return NULL;
}

/* ---- later ---- */

static int same_cover(const struct guard_cover *a, const struct guard_cover *b) {
  return strcmp(a->path, b->path) == 0 && a->writable == b->writable && a->kept == b->kept && a->hidden == b->hidden && guard_same_identity(&a->identity, &b->identity);
}

static int same_zone(const struct guard_zone *a, const struct guard_zone *b) {
  if (a->covers != b->covers || a->names != b->names || a->repositories != b->repositories) return 0;
  for (size_t i = 0; i < a->covers; i++)
    if (!same_cover(&a->cover[i], &b->cover[i])) return 0;
  for (size_t i = 0; i < a->names; i++)
    if (strcmp(a->name[i].path, b->name[i].path) != 0) return 0;
  return 1;
}

int guard_is_fresh(const struct guard *guard, const struct launchfile *file) {
  struct guard now;
  int same = guard_prepare(&now, file) == 0 && now.zones == guard->zones;
  for (size_t i = 0; same && i < now.zones; i++) same = same_zone(&guard->zone[i], &now.zone[i]);
  guard_close(&now);
  return same;
}

void guard_close(struct guard *guard) {
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    if (zone->fd >= 0) close(zone->fd);
    free(zone->cover), free(zone->name), free(zone->repository);
    hide_free(&zone->hide);
    tree_free(&zone->tree);
    free(zone->same);
  }
  if (guard->events >= 0) close(guard->events);
  walk_free(&guard->walk);
  free(guard->zone);
  free(guard->lead);
  free(guard->watch);
  arena_free(&guard->arena);
  guard->zone = NULL;
  guard->lead = NULL;
  guard->watch = NULL;
  guard->zones = guard->leads = guard->watches = 0;
  guard->events = -1;
}
