/* Files that a driver is given. What is kept is never given back, as in the client: a driver ends with end(), without a look for leaks. */
#include "lib/launch-file.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline char *load(const char *path, size_t *size) {
  int fd = open(path, O_RDONLY);
  char *bytes = fd < 0 ? NULL : read_all(fd, LAUNCHFILE_MAX, size);
  if (!bytes) err(2, "%s", path);
  close(fd);
  return bytes;
}

static inline struct launchfile load_launchfile(const char *path) {
  struct launchfile file;
  const char *problem;
  size_t size;
  char *bytes = load(path, &size);
  if (launchfile_check(bytes, size, &file, &problem) < 0) errx(2, "%s: %s", path, problem);
  return file;
}

static inline _Noreturn void end(int status) {
  fflush(stdout);
  _exit(status);
}
