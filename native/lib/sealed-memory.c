#include "lib/sealed-memory.h"

#include "lib/files.h"
#include "lib/text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int fill(int fd, const char *bytes, size_t size) {
  if (write_all(fd, bytes, size) < 0 || lseek(fd, 0, SEEK_SET) < 0) return -1;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

int memory_sealed(const char *bytes, size_t size, const char *what) {
  int fd = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || fill(fd, bytes, size) == 0) return fd;
  return close_with(fd, -1);
}

int text_sealed(const char *what) {
  size_t size;
  const char *bytes = text_end(&size);
  return bytes ? memory_sealed(bytes, size, what) : -1;
}
