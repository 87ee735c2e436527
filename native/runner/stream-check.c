#include "runner/stream-check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int stream_check(int fd) {
  struct stat status;
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fstat(fd, &status) < 0) return -1;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EBADF;
  return S_ISDIR(status.st_mode) || (flags & O_PATH) ? -1 : 0;
}

const char *stream_name(int which) {
  static const char *const names[] = {"stdin", "stdout", "stderr"};
  return names[which];
}
