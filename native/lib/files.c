#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

int close_with(int fd, int done) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return done;
}

DIR *entries_open(int directory) {
  int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy < 0 ? NULL : fdopendir(copy);
  if (!entries) close_with(copy, -1);
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
