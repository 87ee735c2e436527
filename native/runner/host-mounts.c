#include "runner/host-mounts.h"

#include "lib/syscalls.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* A line has at most a few PATH_MAX; a host with a hundred thousand mounts is not supported. */
#define LIST_MAX (64u << 20)
/* Of proc_pid_mountinfo(5): the fifth field is where it is mounted. */
#define FIELDS_BEFORE_POINT 4

static int has_prefix(const char *path, const char *prefix) {
  size_t length = strlen(prefix);
  while (length > 0 && prefix[length - 1] == '/') length--; /* "/" is above everything */
  return strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int is_beside(const char *a, const char *b) { return !has_prefix(a, b) && !has_prefix(b, a); }

/* The mount point of a line; blanks and backslashes in it are written as \ and three octal digits. */
static int point_of(const char *line, char *point, size_t room) {
  for (int field = 0; field < FIELDS_BEFORE_POINT; field++) {
    line += strcspn(line, " ");
    if (*line++ != ' ') return -1;
  }
  for (; *line && *line != ' '; point++, room--) {
    if (room < 2) return -1;
    int is_octal = line[0] == '\\' && strspn(line + 1, "01234567") >= 3;
    *point = is_octal ? (char)((line[1] - '0') << 6 | (line[2] - '0') << 3 | (line[3] - '0')) : *line;
    line += is_octal ? 4 : 1;
  }
  *point = 0;
  return 0;
}

static int concerns_us(const struct mounts *mounts, const char *line) {
  char point[PATH_MAX];
  struct entry entry;
  size_t position = 0;
  if (point_of(line, point, sizeof point) < 0) return 1;
  if (!is_beside(point, "/dev") || !is_beside(point, mounts->init)) return 1;
  while (launchfile_next(mounts->file, &position, &entry))
    if ((entry.verb == V_BIND || entry.verb == V_ZONE) && !is_beside(point, entry.word[0])) return 1;
  return 0;
}

/* All lines; NULL with errno. */
static char *read_list(const struct mounts *mounts, size_t *size) {
  return lseek(mounts->list.fd, 0, SEEK_SET) < 0 ? NULL : read_all(mounts->list.fd, LIST_MAX, size);
}

/* Of all lines keeps those that concern us. Returns their size. */
static size_t keep_ours(const struct mounts *mounts, char *all, size_t size) {
  char *end = all + size, *to = all;
  for (char *line = all, *newline; line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
    size_t length = (size_t)(newline - line) + 1;
    *newline = 0;
    int is_ours = concerns_us(mounts, line);
    *newline = '\n';
    if (!is_ours) continue;
    memmove(to, line, length);
    to += length;
  }
  return (size_t)(to - all);
}

int mounts_watch(struct mounts *mounts, const struct launchfile *file, const char *init) {
  mounts->file = file;
  mounts->init = init;
  mounts->is_all = launchfile_has_slots(file);
  mounts->seen = read_list(mounts, &mounts->seen_size);
  if (!mounts->seen) return -1;
  if (!mounts->is_all) mounts->seen_size = keep_ours(mounts, mounts->seen, mounts->seen_size);
  char *kept = realloc(mounts->seen, mounts->seen_size + 1); /* as long as the sandbox waits */
  if (kept) mounts->seen = kept;
  return 0;
}

int mounts_below(const char *path, char *point, size_t room) {
  int list = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), found = 0;
  size_t size;
  char *all = list < 0 ? NULL : read_all(list, LIST_MAX, &size);
  if (list >= 0) close(list);
  if (!all) return -1;
  for (char *line = all, *newline; !found && (newline = memchr(line, '\n', size - (size_t)(line - all))); line = newline + 1) {
    *newline = 0;
    found = point_of(line, point, room) < 0 || (has_prefix(point, path) && !has_prefix(path, point));
  }
  free(all);
  return found;
}

static int is_same_list(const struct mounts *mounts, char *now, size_t size, char *seen) {
  size_t kept = keep_ours(mounts, now, size), before = mounts->is_all ? keep_ours(mounts, seen, mounts->seen_size) : mounts->seen_size;
  return kept == before && memcmp(now, seen, kept) == 0;
}

int mounts_have_changed(struct mounts *mounts) {
  size_t size;
  char *now = read_list(mounts, &size), *seen = malloc(mounts->seen_size + 1);
  if (seen) memcpy(seen, mounts->seen, mounts->seen_size);
  int is_same = now && seen && is_same_list(mounts, now, size, seen);
  free(now), free(seen);
  mounts->has_moved = 1;
  return !is_same;
}

int mounts_are_stale(struct mounts *mounts) {
  struct pollfd change = {mounts->list.fd, POLLPRI, 0};
  return (poll(&change, 1, 0) != 0 || mounts->has_moved) && mounts_have_changed(mounts); /* POLLERR | POLLPRI */
}
