#include "lib/open-by-steps.h"
#include "unit.h"

#include <linux/openat2.h>
#include <sys/syscall.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static const char *at;

/* A directory d, a file d/file, a link d/link to it, and a link to the directory. */
static int make_tree(void) {
  at = unit_directory();
  int root = open(at, O_RDONLY | O_DIRECTORY);
  int file = mkdirat(root, "d", 0700) < 0 ? -1 : openat(root, "d/file", O_CREAT | O_WRONLY, 0600);
  EXPECT(file >= 0 && symlinkat("file", root, "d/link") == 0 && symlinkat("d", root, "to-d") == 0);
  close(file);
  return root;
}

static void remove_tree(int root) { close(root), unit_remove(at); }

/* The inode that was opened, or -errno. */
static long long met(int fd) {
  struct stat status;
  int error = errno;
  if (fd < 0) return -error;
  EXPECT(fstat(fd, &status) == 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
  close(fd);
  return (long long)status.st_ino;
}

UNIT("what is opened step by step is what openat2 opens, and refused where it refuses") {
  static const struct {
    const char *path;
    int flags;
    uint64_t resolve;
  } cases[] = {
      {"d/file", O_RDONLY, NO_LINKS},
      {"d//file", O_PATH, NO_LINKS | RESOLVE_BENEATH},
      {"d/", O_RDONLY | O_DIRECTORY, NO_LINKS | RESOLVE_BENEATH | RESOLVE_NO_XDEV},
      {".", O_PATH | O_DIRECTORY, NO_LINKS | RESOLVE_BENEATH},
      {"/", O_PATH, NO_LINKS},
      {"/proc/self", O_PATH, NO_LINKS},
      {"/proc/version", O_PATH, NO_LINKS},
      {"/proc/version", O_PATH, NO_LINKS | RESOLVE_NO_XDEV},
      {"/etc", O_PATH, RESOLVE_BENEATH},
      {"d/link", O_PATH | O_NOFOLLOW, NO_LINKS},
      {"d/link", O_PATH, NO_LINKS},
      {"d/link", O_RDONLY, NO_LINKS},
      {"d/missing", O_PATH, NO_LINKS},
      {"d/file/x", O_PATH, NO_LINKS},
      {"", O_PATH, NO_LINKS},
  };
  int root = make_tree();
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct open_how how = {.flags = (uint64_t)cases[i].flags | O_CLOEXEC, .resolve = cases[i].resolve};
    long long kernel = met((int)syscall(SYS_openat2, root, cases[i].path, &how, sizeof how));
    unit_expect_number(met(open_by_steps(root, cases[i].path, (uint64_t)cases[i].flags, cases[i].resolve)), kernel, cases[i].path, __FILE__, __LINE__);
  }
  remove_tree(root);
}

UNIT("steps are stricter where the kernel would follow: links on the way, the way up, and what they cannot keep") {
  int root = make_tree();
  EXPECT(open_by_steps(root, "to-d/file", O_PATH, 0) < 0 && (errno == ENOTDIR || errno == ELOOP));
  EXPECT(open_by_steps(root, "d/../d/file", O_PATH, 0) < 0 && errno == EXDEV);
  EXPECT(open_by_steps(root, "d/file", O_PATH, RESOLVE_IN_ROOT) < 0 && errno == ENOSYS);
  EXPECT(open_by_steps(root, "d/new", O_CREAT | O_WRONLY, 0) < 0 && errno == ENOSYS);
  remove_tree(root);
}
