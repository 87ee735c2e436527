#include "lib/file-lock.h"

#include "lib/clock.h"
#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 2

/* O_NONBLOCK: a FIFO must be refused, not waited for. */
int lock_open(const char *path) {
  struct stat status;
  int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0200);
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  return errno = EINVAL, close_with(fd, -1);
}

int lock_take(int fd, unsigned patience_ms) {
  for (uint64_t deadline = now_ns() + patience_ms * 1000000ull;;) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || now_ns() >= deadline) return -1;
    nanosleep(&(struct timespec){0, PAUSE_MS * 1000000}, NULL);
  }
}

int lock_release(int fd) { return flock(fd, LOCK_UN); }

static int has_room(int fd, off_t bytes) {
  struct statvfs system;
  if (fstatvfs(fd, &system) < 0) return -1;
  if ((uint64_t)system.f_bavail * system.f_frsize >= (uint64_t)bytes) return 0;
  errno = ENOSPC;
  return -1;
}

int reserve_at_end(int fd, off_t bytes) {
  struct stat status;
  if (fstat(fd, &status) < 0) return -1;
  if (fallocate(fd, FALLOC_FL_KEEP_SIZE, status.st_size, bytes) == 0) return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS ? has_room(fd, bytes) : -1;
}
