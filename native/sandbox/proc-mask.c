#include "sandbox/proc-mask.h"

#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void make_readonly(const char *path) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return; /* this kernel has no such knob */
  int tree = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | AT_RECURSIVE);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  if (fd < 0 || tree < 0 || sys_mount_setattr(tree, AT_RECURSIVE, &attr) < 0 || sys_move_mount(tree, fd) < 0)
    fail("proc: make read-only", path);
  close(fd), close(tree);
}

static int open_null(void) {
  struct stat status;
  int null = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (null < 0 || fstat(null, &status) < 0) fail("proc: open mask", "/dev/null");
  /* A mask made of a user's file would show what it should hide. */
  if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3)) fail_with(ENODEV, "proc: mask is not null", "/dev/null");
  return null;
}

static int new_empty_directory(void) {
  int fs = sys_fsopen("tmpfs");
  if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "1") < 0 ||
      sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
    fail("proc: empty directory", "");
  int tree = sys_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (tree < 0) fail("proc: empty directory", "");
  close(fs);
  return tree;
}

/* What covers a path of /proc: null, or a directory with nothing in it, made when the first is needed. */
struct covers {
  int null, directory;
};

static int cover_for(struct covers *covers, mode_t mode) {
  if (S_ISDIR(mode) && covers->directory < 0) return covers->directory = new_empty_directory(); /* cloned once it is attached */
  return sys_open_tree(S_ISDIR(mode) ? covers->directory : covers->null, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
}

static void mask(struct covers *covers, const char *path) {
  struct stat status;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return;
  if (fd < 0 || fstat(fd, &status) < 0) fail("proc: mask", path);
  int cover = cover_for(covers, status.st_mode);
  if (cover < 0 || sys_move_mount(cover, fd) < 0) fail("proc: mask", path);
  close(fd);
  if (cover != covers->directory) close(cover);
}

/* Elsewhere the mask does not exist yet, or is another user's. */
static const char *below_proc(const char *path) {
  if (strncmp(path, "/proc/", 6) != 0) fail_with(EINVAL, "proc: path", path);
  return path;
}

void proc_cover(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  struct covers covers = {open_null(), -1};
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb == V_READONLY) make_readonly(below_proc(entry.word[0]));
    if (entry.verb == V_MASK) mask(&covers, below_proc(entry.word[0]));
  }
  close(covers.null);
  if (covers.directory >= 0) close(covers.directory);
}

static void show(const char *source, const char *path) {
  int point = open(path, O_PATH | O_CLOEXEC);
  if (point < 0 && errno == ENOENT) return;
  int file = sys_open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
  if (point < 0 || file < 0 || sys_mount_setattr(file, 0, &attr) < 0 || sys_move_mount(file, point) < 0)
    fail("proc: show file", path);
  close(point), close(file);
}

void proc_show(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry))
    if (entry.verb == V_PROC_FILE) show(entry.word[0], below_proc(entry.word[1]));
}
