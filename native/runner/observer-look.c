#include "runner/observer-look.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#define PAGE 4096 /* the smallest there is */
#define LINKS_MAX 16

/* ---- memory ---- */

ssize_t process_read(pid_t pid, uint64_t address, void *to, size_t size) {
  struct iovec local = {to, size}, remote[2];
  size_t first = PAGE - address % PAGE;
  if (first > size) first = size;
  /* A transfer stops between two parts, and not within one: the second page may not be there. */
  remote[0] = (struct iovec){(void *)(uintptr_t)address, first};
  remote[1] = (struct iovec){(void *)(uintptr_t)(address + first), size - first};
  return process_vm_readv(pid, &local, 1, remote, size > first ? 2 : 1, 0);
}

int process_read_text(pid_t pid, uint64_t address, char *to, size_t room) {
  ssize_t got = process_read(pid, address, to, room);
  if (got < 0) return -1;
  return memchr(to, 0, (size_t)got) ? 0 : (errno = ENAMETOOLONG, -1);
}

/* ---- inside ---- */

/* The text of a link of /proc; -1 where it is none or does not fit. */
static ssize_t read_link(const char *link, char *to, size_t room) {
  ssize_t length = readlink(link, to, room - 1);
  if (length < 0 || (size_t)length == room - 1) return -1;
  to[length] = 0;
  return length;
}

/* The directory at which the path starts, as the process has it: empty for one from its root. */
static int read_base(pid_t pid, int directory, const char *path, char *to, size_t room) {
  char link[64];
  to[0] = 0;
  if (path[0] == '/') return 0;
  if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", pid);
  else snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, directory);
  return read_link(link, to, room) < 0 || to[0] != '/' ? -1 : 0;
}

/* The root of the sandbox. One that a process has made inside for itself is not looked into: paths in it mean something else. */
static int open_root(pid_t pid) {
  char link[64], text[2];
  snprintf(link, sizeof link, "/proc/%d/root", pid);
  if (readlink(link, text, sizeof text) != 1) return -1; /* not "/" */
  return open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_inside(int root, const char *path, int flags) {
  return sys_openat2(root, path, (uint64_t)(O_PATH | flags), RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* Where the last name of text[0..*end) begins. */
static size_t last_name(const char *text, size_t *end) {
  while (*end > 1 && text[*end - 1] == '/') (*end)--;
  size_t at = *end;
  while (at > 0 && text[at - 1] != '/') at--;
  return at;
}

/* The nearest directory that is there, and in *rest what follows. */
static int open_nearest(int root, char *text, size_t *rest, int *missing) {
  for (size_t end = strlen(text); end > 1;) {
    size_t at = last_name(text, &end);
    char first = text[at];
    text[at] = 0;
    int fd = open_inside(root, at == 0 ? "/" : text, O_DIRECTORY);
    text[at] = first;
    *rest = at, (*missing)++;
    if (fd >= 0 || errno != ENOENT) return fd;
    end = at;
  }
  return -1;
}

/* The name that is missing may be a link that leads to nothing: then what is missing is there. Returns 1 with `text` changed, 0 if not, -1. */
static int follow_link(int directory, char *text, size_t room, size_t rest) {
  char name[NAME_MAX + 1], target[PATH_MAX], after[PATH_MAX];
  size_t length = strcspn(text + rest, "/");
  if (length > NAME_MAX) return -1;
  memcpy(name, text + rest, length);
  name[length] = 0;
  ssize_t got = readlinkat(directory, name, target, sizeof target - 1);
  if (got < 0) return errno == ENOENT || errno == EINVAL ? 0 : -1;
  target[got] = 0;
  if (snprintf(after, sizeof after, "%s", text + rest + length) >= (int)sizeof after) return -1;
  size_t from = target[0] == '/' ? 0 : rest;
  return snprintf(text + from, room - from, "%s%s", target, after) >= (int)(room - from) ? -1 : 1;
}

/* The path of a descriptor as the sandbox has it, and what is missing behind it. */
static int name_place(struct place *place, const char *rest) {
  ssize_t length = read_link(fd_path(place->fd).text, place->path, sizeof place->path);
  if (length <= 0 || place->path[0] != '/') return -1;
  if (!place->missing) return 0;
  size_t at = length == 1 ? 0 : (size_t)length, room = sizeof place->path - at;
  return snprintf(place->path + at, room, "/%s", rest) >= (int)room ? -1 : 0;
}

static int find(struct place *place, int root, char *text, size_t room, int follows) {
  for (int links = 0; links < LINKS_MAX; links++) {
    size_t rest = 0;
    place->missing = 0;
    place->fd = open_inside(root, text, follows ? 0 : O_NOFOLLOW);
    if (place->fd >= 0) return name_place(place, "");
    if (errno != ENOENT) return -1;
    place->fd = open_nearest(root, text, &rest, &place->missing);
    if (place->fd < 0) return -1;
    int followed = place->missing > 1 || follows ? follow_link(place->fd, text, room, rest) : 0;
    if (followed == 0) return name_place(place, text + rest);
    close(place->fd), place->fd = -1;
    if (followed < 0) return -1;
  }
  return -1;
}

int place_find(struct place *place, pid_t pid, int directory, const char *path, int follows) {
  char text[2 * PATH_MAX];
  place->fd = -1;
  if (read_base(pid, directory, path, text, PATH_MAX) < 0) return -1;
  size_t base = strlen(text);
  if (snprintf(text + base, sizeof text - base, "/%s", path) >= (int)(sizeof text - base)) return -1;
  int root = open_root(pid);
  if (root < 0) return -1;
  struct stat status;
  int found = find(place, root, text, sizeof text, follows);
  close(root);
  if (found == 0) found = fstat(place->fd, &status), place->mode = status.st_mode;
  if (found < 0 && place->fd >= 0) close(place->fd);
  return found;
}

int place_is_read_only(const struct place *place) {
  struct statvfs system;
  int is_on_disk = S_ISREG(place->mode) || S_ISDIR(place->mode) || S_ISLNK(place->mode); /* a device can be written all the same */
  return is_on_disk && fstatvfs(place->fd, &system) == 0 && (system.f_flag & ST_RDONLY);
}

int place_may_be_hidden(const struct place *place) {
  struct statfs system;
  return place->missing && !strstr(place->path, "/../") && fstatfs(place->fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/* ---- the host ---- */

/* Steps into one name. Replaces *directory, which is closed; for a link `rest` becomes where it leads, and what followed. */
static int step(int root, int *directory, const char *name, char *rest, size_t room) {
  char target[PATH_MAX], after[PATH_MAX];
  struct stat status;
  struct statfs system;
  int next = sys_openat2(*directory, name, O_PATH | O_NOFOLLOW, RESOLVE_NO_MAGICLINKS);
  if (next < 0) return -1;
  if (fstat(next, &status) < 0 || fstatfs(next, &system) < 0 || system.f_type == AUTOFS_SUPER_MAGIC) return close(next), -1;
  if (!S_ISLNK(status.st_mode)) return close(*directory), *directory = next, 0;
  ssize_t got = readlinkat(next, "", target, sizeof target - 1);
  close(next);
  if (got <= 0) return -1;
  target[got] = 0;
  if (target[0] == '/' && dup3(root, *directory, O_CLOEXEC) < 0) return -1;
  copy_text(after, sizeof after, rest);
  return snprintf(rest, room, "%s/%s", target, after) >= (int)room ? -1 : 1;
}

int host_has(int root, const char *path) {
  char rest[2 * PATH_MAX], name[NAME_MAX + 1];
  int directory = fcntl(root, F_DUPFD_CLOEXEC, 3), links = 0, stepped = directory < 0 ? -1 : 0;
  copy_text(rest, sizeof rest, path);
  while (stepped >= 0 && links <= LINKS_MAX) {
    size_t from = strspn(rest, "/"), length = strcspn(rest + from, "/");
    if (length == 0) break;
    if (length > NAME_MAX) stepped = -1;
    else {
      memcpy(name, rest + from, length);
      name[length] = 0;
      memmove(rest, rest + from + length, strlen(rest + from + length) + 1);
      stepped = step(root, &directory, name, rest, sizeof rest);
      links += stepped > 0;
    }
  }
  return close_with(directory, stepped >= 0 && links <= LINKS_MAX);
}
