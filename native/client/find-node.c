#include "client/find-node.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/text.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* Directories named by the words of a call; more than these and PATH is not searched at all. */
#define MOST_NAMED 256

struct search {
  char *why;
  size_t why_room;
  char directory[PATH_MAX]; /* the caller's, canonical */
  char *named[MOST_NAMED];  /* canonical */
  size_t named_count;
};

static void note(struct search *search, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct search *search, const char *format, ...) {
  size_t used = strlen(search->why);
  va_list values;
  if (used > 0 && used + 2 < search->why_room) used += (size_t)snprintf(search->why + used, search->why_room - used, "; ");
  va_start(values, format);
  if (used < search->why_room) vsnprintf(search->why + used, search->why_room - used, format, values);
  va_end(values);
}

/* ---- whose it is ---- */

/* A sandbox of our own, as src/os/inside-own.ts knows it: where Landlock hides /proc from us, too. */
static int is_inside_own(void) {
  struct stat root, init;
  struct statfs system;
  if (stat("/", &root) < 0 || stat("/.init", &init) < 0 || statfs("/", &system) < 0) return 0;
  return S_ISREG(init.st_mode) && init.st_dev != root.st_dev && system.f_type == TMPFS_MAGIC;
}

/*
 * In a user namespace, files of ids that it does not have are shown as the overflow id's: no user in it can be their owner. In the
 * first namespace that id is a user like any other.
 */
static int is_unmapped(uid_t owner) {
  unsigned first, outside, length;
  FILE *map = owner == 65534 ? fopen("/proc/self/uid_map", "re") : NULL;
  int is_first = !map || (fscanf(map, "%u %u %u", &first, &outside, &length) == 3 && length == UINT_MAX);
  if (map) fclose(map);
  return !is_first || (owner == 65534 && is_inside_own());
}

static int is_trusted_owner(uid_t owner) { return owner == 0 || owner == geteuid() || is_unmapped(owner); }

/* Why a canonical path is not to be executed; NULL when it may be. */
static const char *distrust_file(const char *path) {
  struct stat status;
  if (stat(path, &status) < 0) return strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (!is_trusted_owner(status.st_uid)) return "neither root's nor yours";
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return "writable by its group or by others";
  return access(path, X_OK) < 0 ? "not executable" : NULL;
}

static const char *distrust_directory(const char *path) {
  struct stat status;
  if (stat(path, &status) < 0) return strerror(errno);
  if (!is_trusted_owner(status.st_uid)) return "in a directory that is neither root's nor yours";
  return status.st_mode & S_IWOTH ? "in a directory that others can write to" : NULL;
}

/* ---- the one on record ---- */

/* One absolute path, without the line feed. */
static int read_record(const char *file, char *path, size_t room) {
  (void)read_small(AT_FDCWD, file, path, room);
  path[strcspn(path, "\n")] = 0;
  return path[0] == '/' ? 0 : -1;
}

static int find_recorded(struct search *search, const char *root, char *node) {
  char file[PATH_MAX + 16], path[PATH_MAX], real[PATH_MAX];
  snprintf(file, sizeof file, "%s/dist/node-path", root);
  if (read_record(file, path, sizeof path) < 0) {
    note(search, "%s: no record of a node", file);
    return -1;
  }
  const char *why = !realpath(path, real) ? strerror(errno) : strcmp(real, path) != 0 ? "a link leads elsewhere" : distrust_file(path);
  if (why) {
    note(search, "%s (of %s): %s", path, file, why);
    return -1;
  }
  copy_text(node, PATH_MAX, real);
  return 0;
}

/* ---- by PATH ---- */

/* The system's own directories, where a caller may stand, and which words may name (`ls /usr`): only root can plant something there. */
static int is_system(const char *directory) {
  static const char *const directories[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};
  for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
    if (strcmp(directory, directories[i]) == 0) return 1;
  return 0;
}

/* No sandbox is given `/` to write to, so being there or naming it proves nothing. */
static const char *planted(const struct search *search, const char *path) {
  if (strcmp(search->directory, "/") != 0 && is_at_or_below(path, search->directory)) return "at or below the current directory";
  for (size_t i = 0; i < search->named_count; i++)
    if (is_at_or_below(path, search->named[i])) return "at or below a path of the command line";
  return NULL;
}

static int add_named(struct search *search, const char *piece) {
  struct stat status;
  char *real = stat(piece, &status) == 0 && S_ISDIR(status.st_mode) ? realpath(piece, NULL) : NULL;
  if (!real || strcmp(real, "/") == 0) return 0;
  if (search->named_count == MOST_NAMED) return -1;
  search->named[search->named_count++] = real;
  return 0;
}

/* Directories that a word names, as a whole or in a part: `--rw=DIR`, `name=DIR:rw`. */
static int add_word(struct search *search, const char *word) {
  char *copy = strdup(word), *rest = copy;
  int failed = copy ? add_named(search, word) : -1;
  for (char *piece; !failed && (piece = strsep(&rest, "=:,"));) failed = *piece ? add_named(search, piece) : 0;
  free(copy);
  return failed;
}

/* Up to the command, where that is marked. */
static int add_words(struct search *search, char *const *words) {
  for (; *words && strcmp(*words, "--") != 0; words++)
    if (add_word(search, *words) < 0) return -1;
  return 0;
}

/* Why nothing in this directory is executed, by its name and by where that leads. */
static const char *distrust_entry(const struct search *search, const char *entry, char *real) {
  if (entry[0] != '/') return "not absolute";
  if (!realpath(entry, real)) return strerror(errno);
  if (is_system(entry) && is_system(real)) return NULL;
  const char *why = planted(search, entry);
  return why ? why : planted(search, real);
}

static const char *distrust_program(const struct search *search, const char *node) {
  char parent[PATH_MAX];
  copy_text(parent, sizeof parent, node);
  *strrchr(parent, '/') = 0;
  const char *why = is_system(parent) ? NULL : planted(search, node);
  if (!why) why = distrust_file(node);
  return why ? why : distrust_directory(parent[0] ? parent : "/");
}

/* A missing path is not worth a word. */
static int find_in(struct search *search, const char *entry, char *node) {
  char real[PATH_MAX], file[PATH_MAX + 8];
  const char *why = distrust_entry(search, entry, real);
  if (why) {
    if (entry[0] != '/' || access(entry, F_OK) == 0) note(search, "%s in PATH: %s", entry[0] ? entry : "an empty entry", why);
    return -1;
  }
  snprintf(file, sizeof file, "%s/node", real);
  if (!realpath(file, node)) return -1;
  why = distrust_directory(real);
  if (!why) why = distrust_program(search, node);
  if (!why) return 0;
  note(search, "%s: %s", file, why);
  return -1;
}

static int find_by_path(struct search *search, const struct node_search *given, char *node) {
  if (!getcwd(search->directory, sizeof search->directory) || add_words(search, given->words) < 0) {
    note(search, "PATH is not searched: the current directory or a path of the command line cannot be told");
    return -1;
  }
  char *copy = strdup(given->path ? given->path : ""), *rest = copy;
  int found = -1;
  for (char *entry; copy && found < 0 && (entry = strsep(&rest, ":"));) found = find_in(search, entry, node);
  free(copy);
  if (found < 0) note(search, "PATH: no other node");
  return found;
}

int node_find(const struct node_search *given, char *node, size_t room, char *why, size_t why_room) {
  struct search search = {.why = why, .why_room = why_room};
  char found[PATH_MAX];
  why[0] = 0;
  if (find_recorded(&search, given->root, found) < 0 && find_by_path(&search, given, found) < 0) return -1;
  return (size_t)snprintf(node, room, "%s", found) < room ? 0 : -1;
}
