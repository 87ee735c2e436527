#include "lib/make-directory.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

static int open_step(int parent, const char *name) {
  return sys_openat2(parent, name, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Whatever took the name meanwhile is opened like any other step, and refused if it is a link. */
static int make_step(int parent, const char *name) {
  int fd = open_step(parent, name);
  if (fd >= 0 || errno != ENOENT) return fd;
  if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST) return -1;
  return open_step(parent, name);
}

static int is_name(const char *name, size_t length) {
  return length > 0 && length <= NAME_MAX && !(length == 1 && name[0] == '.') && !(length == 2 && name[0] == '.' && name[1] == '.');
}

int make_directory_path(const char *path, int *failed) {
  char name[NAME_MAX + 1];
  int at = open_step(AT_FDCWD, "/");
  *failed = 1;
  if (path[0] != '/') return errno = EINVAL, -1;
  for (const char *word = path + 1; at >= 0 && *word;) {
    size_t length = strcspn(word, "/");
    *failed = (int)(word - path + (ptrdiff_t)length);
    errno = EINVAL;
    int next = -1;
    if (is_name(word, length)) {
      memcpy(name, word, length);
      name[length] = 0;
      next = make_step(at, name);
    }
    at = close_with(at, next);
    word += length + (word[length] == '/');
  }
  return at;
}
