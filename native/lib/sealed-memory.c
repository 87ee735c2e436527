#include "lib/sealed-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int fill(int fd, const char *bytes, size_t size) {
  for (size_t sent = 0; sent < size;) {
    ssize_t got = write(fd, bytes + sent, size - sent);
    if (got < 0) return -1;
    sent += (size_t)got;
  }
  if (lseek(fd, 0, SEEK_SET) < 0) return -1;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

int memory_sealed(const char *bytes, size_t size, const char *what) {
  int fd = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || fill(fd, bytes, size) == 0) return fd;
  int error = errno;
  close(fd);
  return errno = error, -1;
}
