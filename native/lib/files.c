#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int close_with(int fd, int done) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return done;
}

int fd_above(int fd, int lowest) { return fd < 0 ? -1 : close_with(fd, fcntl(fd, F_DUPFD_CLOEXEC, lowest)); }

struct fd_path fd_path(int fd) {
  struct fd_path path;
  snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
  return path;
}

ssize_t read_small(int directory, const char *path, char *text, size_t room) {
  int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);
  text[length < 0 ? 0 : length] = 0;
  return close_with(fd, (int)length);
}

DIR *entries_at(int directory, const char *path) {
  int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) close_with(fd, -1);
  return entries;
}

const char *entries_next(DIR *entries) {
  for (struct dirent *entry; (errno = 0, entry = readdir(entries));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
  return NULL;
}

int entries_close(DIR *entries, int done) {
  int error = errno;
  closedir(entries);
  errno = error;
  return done == 0 && error ? -1 : done;
}

size_t write_most(int fd, const char *bytes, size_t size) {
  for (size_t written = 0; written < size;) {
    ssize_t done = write(fd, bytes + written, size - written);
    if (done >= 0) written += (size_t)done;
    else if (errno == EAGAIN) (void)poll(&(struct pollfd){fd, POLLOUT, 0}, 1, -1);
    else if (errno != EINTR) return written;
  }
  return size;
}

int write_all(int fd, const char *bytes, size_t size) { return write_most(fd, bytes, size) == size ? 0 : -1; }
