#include "sandbox/proc-mask.h"

#include "lib/files.h"
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
  return close_with(fs, tree);
}

/* Covers for paths of /proc: null, or a directory with nothing in it, made when the first is needed. */
struct covers {
  int null, directory;
  int next; /* a clone of null that is not attached yet; -1 = none */
};

/* Most paths are files, so this is tried first. 0 = it is covered, or does not exist; -1 with errno. */
static int mask_file(struct covers *covers, const char *path) {
  if (covers->next < 0) covers->next = sys_open_tree(covers->null, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
  if (covers->next < 0) return -1;
  if (sys_move_mount_at(covers->next, AT_FDCWD, path, MOVE_MOUNT_T_SYMLINKS) < 0) return errno == ENOENT ? 0 : -1;
  close(covers->next);
  covers->next = -1;
  return 0;
}

static int mask_directory(struct covers *covers, const char *path) {
  int is_first = covers->directory < 0; /* what is cloned has to be attached itself */
  int cover = is_first ? new_empty_directory() : sys_open_tree(covers->directory, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
  int moved = cover < 0 ? -1 : sys_move_mount_at(cover, AT_FDCWD, path, MOVE_MOUNT_T_SYMLINKS);
  if (is_first) covers->directory = cover;
  else if (cover >= 0) close(cover);
  return moved;
}

static int is_directory_instead(int error) { return error == ENOTDIR || error == EINVAL; } /* as move_mount(2) says it */

static void mask(struct covers *covers, const char *path) {
  if (mask_file(covers, path) == 0) return;
  if (!is_directory_instead(errno) || mask_directory(covers, path) < 0) fail("proc: mask", path);
}

/* Elsewhere the mask does not exist yet, or is another user's. */
static const char *below_proc(const char *path) {
  if (strncmp(path, "/proc/", 6) != 0) fail_with(EINVAL, "proc: path", path);
  return path;
}

void proc_cover(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  struct covers covers = {open_null(), -1, -1};
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb == V_READONLY) make_readonly(below_proc(entry.word[0]));
    if (entry.verb == V_MASK) mask(&covers, below_proc(entry.word[0]));
  }
  close(covers.null);
  if (covers.directory >= 0) close(covers.directory);
  if (covers.next >= 0) close(covers.next);
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
  while (launchfile_next_of(file, V_PROC_FILE, &position, &entry)) show(entry.word[0], below_proc(entry.word[1]));
}
