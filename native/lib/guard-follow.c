/*
 * Follows protected names through symbolic links, and paths in the configuration of a repository (lib/git-config.h).
 *
 * Theory of operation. A path is followed as the kernel would, step by step from the root of the host. A step in a writable zone is one
 * that a command could exchange: a link there is covered, as a name that stays in its place, and the end of the way is closed like any
 * protected path. Steps elsewhere are followed and left alone. What a hidden link leads to is emptied instead, in zones of every mode, and
 * each link on the way only stays in its place.
 */
#include "lib/guard.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as the kernel follows (path_resolution(7)). */
#define LINKS_MAX 40

struct way {
  struct guard *guard;
  char at[PATH_MAX];   /* what has been followed; no link is left in it, "" = the root of the host */
  char rest[PATH_MAX]; /* what is to be followed */
  int links;
  int is_named; /* the last step was a directory by its name */
  int end;      /* LEAD_ of the lead */
};

static int give_up(struct way *way, const char *path, int error) {
  copy_text(way->guard->failed, sizeof way->guard->failed, path);
  return errno = error, -1;
}

/* The zone nearest to `path` whose entries a command can exchange; NULL = none. */
static struct guard_zone *zone_of(struct guard *guard, const char *path) {
  struct guard_zone *nearest = NULL;
  for (size_t i = 0; i < guard->zones; i++) {
    struct guard_zone *zone = &guard->zone[i];
    if (guard_below(zone, path) && (!nearest || strlen(zone->source) > strlen(nearest->source))) nearest = zone;
  }
  return nearest;
}

static enum look look_at_host(const char *path, char *at, struct stat *status) {
  copy_text(at, PATH_MAX, path);
  if (lstat(path[0] ? path : "/", status) == 0) return S_ISLNK(status->st_mode) ? LOOK_LINK : LOOK_FOUND;
  if (errno == ENOENT || errno == ENOTDIR) return LOOK_MISSING;
  return errno == EACCES && geteuid() != 0 ? LOOK_CLOSED : LOOK_FAILED; /* the user's programs cannot follow it either */
}

static ssize_t read_link(const struct guard_zone *zone, const char *path, char text[PATH_MAX]) {
  int fd = zone ? sys_openat2(zone->fd, guard_below(zone, path), O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)
                : open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : readlinkat(fd, "", text, PATH_MAX - 1);
  if (length >= 0) text[length] = 0;
  return close_with(fd, (int)length);
}

/* ---- steps ---- */

/* The next word of `rest`, which loses it. 0 = there is none. */
static int next_word(struct way *way, char word[NAME_MAX + 2]) {
  size_t begin = strspn(way->rest, "/"), length = strcspn(way->rest + begin, "/");
  if (length == 0) return 0;
  size_t kept = length <= NAME_MAX ? length : NAME_MAX + 1; /* too long for any name */
  memcpy(word, way->rest + begin, kept);
  word[kept] = 0;
  memmove(way->rest, way->rest + begin + length, strlen(way->rest + begin + length) + 1);
  return 1;
}

static void step_up(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) *slash = 0;
}

/* 1 = go on, 0 = it leads nowhere, -1 with errno. */
static int expand(struct way *way, const struct guard_zone *zone, const char *link) {
  char text[PATH_MAX], rest[PATH_MAX];
  if (++way->links > LINKS_MAX) return way->end == LEAD_INNER || way->end == LEAD_HIDDEN ? 0 : give_up(way, link, ELOOP); /* where no program can follow */
  if (read_link(zone, link, text) < 0) return give_up(way, link, errno);
  if ((size_t)snprintf(rest, sizeof rest, "%s/%s", text, way->rest) >= sizeof rest) return give_up(way, link, ENAMETOOLONG);
  copy_text(way->rest, sizeof way->rest, rest);
  if (text[0] == '/') way->at[0] = 0;
  return 1;
}

/* `rest` behind a name that is missing: what would be there one day. With a ".." in it that depends on what will be there. */
static int watch_missing(struct way *way, const char *missing) {
  char path[PATH_MAX], word[NAME_MAX + 2];
  copy_text(path, sizeof path, missing);
  while (next_word(way, word)) {
    if (strcmp(word, ".") == 0) continue;
    if (strcmp(word, "..") == 0) return guard_watch_name(way->guard, missing);
    size_t used = strlen(path);
    if ((size_t)snprintf(path + used, sizeof path - used, "/%s", word) >= sizeof path - used) return give_up(way, missing, ENAMETOOLONG);
  }
  return guard_watch_name(way->guard, path);
}

static int keep_hidden_step(struct way *way, const char *step) {
  struct stat status;
  if (lstat(step, &status) < 0) return give_up(way, step, errno);
  return guard_hide_path(way->guard, step, &status, HIDDEN_STEP);
}

/* "x/../y" is y only while x is where it is: a link in its place would lead elsewhere. */
static int leave_directory(struct way *way) {
  char at[PATH_MAX];
  struct stat status;
  const struct guard_zone *zone = way->is_named && way->end != LEAD_HIDDEN ? zone_of(way->guard, way->at) : NULL;
  if (way->is_named && way->end == LEAD_HIDDEN && keep_hidden_step(way, way->at) < 0) return -1;
  way->is_named = 0;
  if (zone && guard_below(zone, way->at)[0]) {
    if (look_at(zone->fd, guard_below(zone, way->at), at, &status) != LOOK_FOUND) return give_up(way, way->at, ESTALE);
    if (S_ISDIR(status.st_mode) && guard_keep_path(way->guard, way->at, &status) < 0) return -1;
  }
  return step_up(way->at), 1;
}

/* Without snprintf: a run takes many steps. */
static int put_step(char next[PATH_MAX], const char *at, const char *word) {
  size_t length = strlen(at), size = strlen(word) + 1;
  if (length + 1 + size > PATH_MAX) return -1;
  memcpy(next, at, length);
  next[length] = '/';
  memcpy(next + length + 1, word, size);
  return 0;
}

/* 1 = go on, 0 = this is the end, -1 with errno. */
static int take_step(struct way *way, const char *word) {
  char next[PATH_MAX], at[PATH_MAX];
  struct stat status;
  if (strcmp(word, ".") == 0) return 1;
  if (strcmp(word, "..") == 0) return leave_directory(way);
  way->is_named = 0;
  if (put_step(next, way->at, word) < 0) return give_up(way, way->at, ENAMETOOLONG);
  const struct guard_zone *zone = way->end == LEAD_HIDDEN ? NULL : zone_of(way->guard, next);
  const char *in_zone = zone ? guard_below(zone, next) : "";
  switch (zone && in_zone[0] ? look_at(zone->fd, in_zone, at, &status) : look_at_host(next, at, &status)) {
    case LOOK_FOUND: copy_text(way->at, sizeof way->at, next); return way->is_named = 1;
    case LOOK_LINK:
      if (zone && strcmp(at, in_zone) != 0) return give_up(way, next, ESTALE); /* exchanged while we look */
      if (zone && guard_cover_path(way->guard, next, &status) < 0) return -1;
      if (way->end == LEAD_HIDDEN && keep_hidden_step(way, next) < 0) return -1;
      return expand(way, zone, next);
    case LOOK_MISSING: return zone && way->end != LEAD_WORD ? watch_missing(way, next) : 0;
    case LOOK_CLOSED: return way->end == LEAD_HIDDEN ? give_up(way, next, EACCES) : 0;
    case LOOK_FAILED: return give_up(way, next, errno);
  }
  return -1;
}

static int close_end(struct way *way) {
  char at[PATH_MAX];
  struct stat status;
  if (way->end == LEAD_HIDDEN) return lstat(way->at, &status) < 0 ? give_up(way, way->at, errno) : guard_hide_path(way->guard, way->at, &status, HIDDEN_EMPTY);
  const struct guard_zone *zone = zone_of(way->guard, way->at);
  if (!zone) return 0;
  int is_root = !guard_below(zone, way->at)[0];
  if (way->end == LEAD_LINK || ((way->end == LEAD_WORD || way->end == LEAD_INNER) && is_root)) return 0; /* "git add ." names no file */
  if (is_root) return give_up(way, way->at, EBUSY);
  enum look look = look_at(zone->fd, guard_below(zone, way->at), at, &status);
  if (look != LOOK_FOUND) return give_up(way, way->at, look == LOOK_FAILED ? errno : ESTALE);
  if (way->end == LEAD_WORD && !S_ISREG(status.st_mode)) return 0;
  return guard_cover_path(way->guard, way->at, &status);
}

int guard_follow(struct guard *guard, const struct guard_lead *lead, char at[PATH_MAX]) {
  struct way way = {.guard = guard, .end = lead->end};
  char word[NAME_MAX + 2];
  int done = 1;
  if (strlen(lead->text) >= sizeof way.rest || strlen(lead->from) >= sizeof way.at) return give_up(&way, lead->from, ENAMETOOLONG);
  copy_text(way.rest, sizeof way.rest, lead->text);
  if (lead->text[0] != '/') copy_text(way.at, sizeof way.at, strcmp(lead->from, "/") == 0 ? "" : lead->from);
  while (done > 0 && next_word(&way, word)) done = take_step(&way, word);
  if (done > 0) done = close_end(&way) < 0 ? -1 : 1;
  copy_text(at, PATH_MAX, way.at);
  return done;
}

/* ---- a home ---- */

/* The word of a list that begins there, "" = the end. */
static const char *next_name(const char *names, char name[PATH_MAX]) {
  size_t length = strcspn(names, " "), kept = length < PATH_MAX ? length : PATH_MAX - 1;
  memcpy(name, names, kept);
  name[kept] = 0;
  return names + length + (names[length] == ' ');
}

int guard_is_in_homes(const struct guard *guard, const char *name) { return guard->home && guard_has_word(guard->home_names, name); }

static int add_home_lead(struct guard *guard, const char *path) {
  return guard_add_lead(guard, &(struct guard_lead){.from = guard->home, .text = path, .end = LEAD_INNER});
}

/* Links directly in a directory: deeper ones are not looked for. */
static int add_home_entries(struct guard *guard, int directory, const char *name) {
  char room[8 << 10] __attribute__((aligned(64))), path[PATH_MAX];
  for (long got; (got = sys_getdents(directory, room, sizeof room)) != 0;) {
    if (got < 0) return -1;
    for (long at = 0; at < got; at += ((const struct directory_entry *)(room + at))->size) {
      const struct directory_entry *entry = (const struct directory_entry *)(room + at);
      if (entry->type != DT_LNK && entry->type != DT_UNKNOWN) continue;
      if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0) continue;
      if ((size_t)snprintf(path, sizeof path, "%s/%s", name, entry->name) >= sizeof path) continue;
      if (add_home_lead(guard, path) < 0) return -1;
    }
  }
  return 0;
}

/* The user's programs cannot run a file that the user may not look at. */
static int is_absent(int error) { return error == ENOENT || error == ENOTDIR || (error == EACCES && geteuid() != 0); }

static int add_home_name(struct guard *guard, int home, const char *name) {
  int fd = sys_openat2(home, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH);
  if (fd < 0 && errno == ELOOP) return add_home_lead(guard, name);
  if (fd < 0 && errno == ENOTDIR) return add_home_lead(guard, name); /* a file, or a link in the place of one */
  if (fd < 0) return is_absent(errno) ? 0 : -1;
  return close_with(fd, add_home_entries(guard, fd, name));
}

static int add_home_names(struct guard *guard, int home) {
  char name[PATH_MAX];
  struct root_names there;
  root_names_read(&there, home);
  for (const char *names = guard->home_names; *names;) {
    names = next_name(names, name);
    if (!root_names_lack(&there, name) && add_home_name(guard, home, name) < 0) return copy_text(guard->failed, sizeof guard->failed, name), -1;
  }
  return 0;
}

int guard_add_home(struct guard *guard) {
  if (!guard->home) return 0;
  for (size_t i = 0; i < guard->zones; i++)
    if (guard_below(&guard->zone[i], guard->home)) return 0;
  int home = open(guard->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (home < 0) return is_absent(errno) ? 0 : (copy_text(guard->failed, sizeof guard->failed, guard->home), -1);
  return close_with(home, add_home_names(guard, home));
}

/* ---- files ---- */

#define TO_READ (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC)

/* Can the user's own programs not read it either, as the command? Then it says nothing. */
static int is_closed_file(struct guard_zone *zone, const char *path) {
  char at[PATH_MAX];
  struct stat status;
  if (geteuid() == 0) return 0;
  if (!zone) return 1;
  enum look look = look_at(zone->fd, guard_below(zone, path), at, &status);
  return look == LOOK_CLOSED || (look == LOOK_FOUND && status.st_uid != geteuid());
}

int guard_open_file(struct guard *guard, const char *path) {
  struct unlocked unlocked = {0};
  struct guard_zone *zone = zone_of(guard, path);
  int fd = open(path, TO_READ);
  if (fd < 0 && errno == EACCES && zone && unlock_way(&unlocked, zone->fd, guard_below(zone, path), 0100)) fd = open(path, TO_READ);
  int error = fd < 0 && errno == EACCES && is_closed_file(zone, path) ? ENOENT : errno;
  unlock_end(&unlocked);
  errno = error;
  return fd;
}
