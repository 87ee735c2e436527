/*
 * Theory of operation. The runner names paths to the daemon, and the daemon looks each of them up again, as root, when the
 * container starts. The owner of a directory on the way can exchange it for a symbolic link or for another directory in
 * between. So before the command exists the mounts are compared, from inside, with what the runner has seen and still holds open.
 * A directory that was exchanged in time is mounted somewhere else or is another inode, and then nothing is run.
 */
#include "tools/container-mounts.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#ifndef ST_RDONLY
#define ST_RDONLY 1
#endif

struct held {
  const char *target, *path, *dev, *ino;
  int readonly;
  char mount_point[PATH_MAX]; /* as the kernel names it, without links */
};

static int parse(char **words, struct held *held) {
  *held = (struct held){.target = words[0], .path = words[1], .dev = words[2], .ino = words[3]};
  held->readonly = strcmp(words[4], "ro") == 0;
  return held->readonly || strcmp(words[4], "rw") == 0;
}

/* Follows no link. Returns -1 with errno; ENOLINK for what this id cannot reach, so the command cannot either. */
static int open_below(int at, const char *path) {
  char names[PATH_MAX];
  char *rest = NULL;
  if (snprintf(names, sizeof names, "%s", path) >= (int)sizeof names) return errno = ENAMETOOLONG, -1;
  int fd = openat(at, ".", O_PATH | O_CLOEXEC);
  for (char *name = strtok_r(names, "/", &rest); fd >= 0 && name; name = strtok_r(NULL, "/", &rest)) {
    struct stat directory;
    int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = errno;
    /* Its owner could give himself the permission later. */
    if (next < 0 && error == EACCES && fstat(fd, &directory) == 0 && directory.st_uid != getuid()) error = ENOLINK;
    errno = error;
    fd = close_with(fd, next);
  }
  return fd;
}

static int is_inode(int fd, const struct held *held) {
  struct stat status;
  char dev[32], ino[32];
  if (fstat(fd, &status) < 0) return 0;
  snprintf(dev, sizeof dev, "%llu", (unsigned long long)status.st_dev);
  snprintf(ino, sizeof ino, "%llu", (unsigned long long)status.st_ino);
  return strcmp(dev, held->dev) == 0 && strcmp(ino, held->ino) == 0 && !S_ISLNK(status.st_mode);
}

static int is_mount(int fd) {
  struct file_status status = {.attributes = 0};
  return sys_statx(fd, &status) == 0 && (status.attributes & STATUS_IS_MOUNTED);
}

static int is_readonly(int fd) {
  struct statfs status;
  return fstatfs(fd, &status) == 0 && (status.f_flags & ST_RDONLY);
}

static int find_mount_point(int fd, struct held *held) {
  ssize_t length = readlink(fd_path(fd).text, held->mount_point, sizeof held->mount_point - 1);
  if (length < 0) return errno;
  held->mount_point[length] = 0;
  return 0;
}

static int check_open(int fd, struct held *held) {
  if (strcmp(held->dev, ANY_DEVICE) == 0) return find_mount_point(fd, held);
  if (!is_inode(fd, held)) return ESTALE;
  if (!is_mount(fd)) return ENOTBLK;
  if (held->readonly && !is_readonly(fd)) return EROFS;
  return find_mount_point(fd, held);
}

/* Returns 0 or an errno. */
static int check(struct held *held) {
  int zone = open(held->target, O_PATH | O_CLOEXEC), is_zone = strcmp(held->path, ".") == 0;
  int fd = zone < 0 || is_zone ? zone : open_below(zone, held->path), error = errno;
  if (fd < 0) error = error == ENOLINK ? 0 : error;
  else error = check_open(fd, held);
  if (fd >= 0 && fd != zone) close(fd);
  return close_with(zone, error);
}

/* ---- what the daemon mounted besides ---- */

/* Blanks, tabs, line ends and backslashes are octal in mountinfo: show_mountinfo() of fs/proc_namespace.c. */
static void unescape(char *text) {
  char *to = text;
  for (char *from = text; *from; to++) {
    unsigned code;
    if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1) *to = (char)code, from += 4;
    else *to = *from++;
  }
  *to = 0;
}

static size_t covers(const struct held *held, const char *mount_point) {
  size_t length = strlen(held->mount_point);
  if (length == 0 || strncmp(mount_point, held->mount_point, length) != 0) return 0;
  return mount_point[length] == 0 || mount_point[length] == '/' ? length : 0;
}

/* The innermost of our mounts that `place` lies in decides. */
static int may_be_writable(const struct held *all, int count, const char *mount_point) {
  size_t longest = 0;
  int readonly = 0;
  for (int i = 0; i < count; i++) {
    size_t length = covers(&all[i], mount_point);
    if (length > longest) longest = length, readonly = all[i].readonly;
  }
  return !readonly;
}

static int is_option(const char *options, const char *name) {
  size_t length = strlen(name);
  for (; options; options = strchr(options, ',') ? strchr(options, ',') + 1 : NULL)
    if (strncmp(options, name, length) == 0 && (options[length] == ',' || options[length] == 0)) return 1;
  return 0;
}

/* A read-only bind mount is not recursive with every daemon: a file system below it would stay writable. */
static const char *writable_below(const struct held *all, int count, int *error) {
  static char mount_point[PATH_MAX];
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  char *line = NULL, *options = NULL;
  size_t room = 0;
  int found = 0;
  if (!mounts) return *error = errno, "/proc/self/mountinfo";
  while (!found && getline(&line, &room, mounts) > 0) {
    char *rest = NULL, *field = strtok_r(line, " ", &rest);
    for (int skip = 0; field && skip < 4; skip++) field = strtok_r(NULL, " ", &rest);
    options = strtok_r(NULL, " ", &rest);
    if (!field || !options) continue;
    unescape(field);
    found = !is_option(options, "ro") && !may_be_writable(all, count, field);
    if (found) snprintf(mount_point, sizeof mount_point, "%s", field);
  }
  if (found) *error = EROFS;
  else if (ferror(mounts)) *error = EIO, found = 1, snprintf(mount_point, sizeof mount_point, "/proc/self/mountinfo");
  free(line);
  fclose(mounts);
  return found ? mount_point : NULL;
}

const char *container_mounts_problem(char **words, int count, int *error) {
  static char name[PATH_MAX];
  struct held *all = calloc((size_t)count + 1, sizeof *all);
  const char *problem = NULL;
  if (!all) return *error = ENOMEM, "mounts";
  for (int i = 0; i < count && !problem; i++) {
    *error = parse(words + i * MOUNT_WORDS, &all[i]) ? check(&all[i]) : EINVAL;
    if (*error == 0) continue;
    snprintf(name, sizeof name, strcmp(all[i].path, ".") == 0 ? "%s" : "%s/%s", all[i].target, all[i].path);
    problem = name;
  }
  if (!problem) problem = writable_below(all, count, error);
  free(all);
  return problem;
}
