#include "lib/open-by-steps.h"

#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH | RESOLVE_NO_XDEV)

static int refuse(int fd, int error) {
  close(fd);
  errno = error;
  return -1;
}

/* Whether both are of one mount; -1 where the kernel does not tell. */
static int share_mount(int one, int other) {
  struct file_status first, second;
  if (sys_statx(one, &first) < 0 || sys_statx(other, &second) < 0) return -1;
  if (!(first.mask & second.mask & STATUS_MOUNT)) return errno = ENOSYS, -1;
  return first.mount == second.mount;
}

/* A link is opened itself by O_PATH with O_NOFOLLOW, which only the caller may have asked for. */
static int open_step(int above, const char *name, int flags, uint64_t resolve) {
  struct stat status;
  if (strcmp(name, "..") == 0) return errno = EXDEV, -1;
  int fd = openat(above, name, flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &status) < 0) return refuse(fd, errno);
  if (S_ISLNK(status.st_mode) && !(flags & O_NOFOLLOW)) return refuse(fd, ELOOP);
  int shared = resolve & RESOLVE_NO_XDEV ? share_mount(above, fd) : 1;
  return shared == 1 ? fd : refuse(fd, shared < 0 ? errno : EXDEV);
}

/* Cuts the first name off `*path`. */
static char *next_name(char **path) {
  char *name = *path + strspn(*path, "/");
  *path = name + strcspn(name, "/");
  if (**path) *(*path)++ = 0;
  return name;
}

int open_by_steps(int directory, const char *path, uint64_t flags, uint64_t resolve) {
  char rest[PATH_MAX], *at = rest;
  size_t size = strlen(path) + 1;
  if ((resolve & ~(uint64_t)KEPT) || (flags & (O_CREAT | O_TMPFILE) & ~O_DIRECTORY)) return errno = ENOSYS, -1;
  if (size == 1) return errno = ENOENT, -1;
  if (size > sizeof rest) return errno = ENAMETOOLONG, -1;
  if (path[0] == '/' && (resolve & RESOLVE_BENEATH)) return errno = EXDEV, -1;
  memcpy(rest, path, size);
  int fd = openat(directory, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (char *name = next_name(&at); fd >= 0; name = next_name(&at)) {
    int is_last = at[strspn(at, "/")] == 0;
    int next = open_step(fd, *name ? name : ".", is_last ? (int)flags : O_PATH | O_DIRECTORY, resolve);
    fd = close_with(fd, next);
    if (is_last) break;
  }
  return fd;
}
