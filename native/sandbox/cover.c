#include "sandbox/cover.h"

#include "lib/contract.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

void cover_attributes(int tree, unsigned long long attributes, const char *path) {
  struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
  if (sys_mount_setattr(tree, AT_RECURSIVE, &attr) < 0) fail("stage: mount_setattr", path);
}

int cover_clone(int source, const char *path) {
  int tree = sys_open_tree(source, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
  if (tree < 0) fail("stage: open_tree", path);
  return tree;
}

/* ---- protected paths ---- */

static int is_mount_root(int fd) {
  struct file_status status;
  if (sys_statx(fd, &status) < 0) fail("stage: statx", "");
  return (status.attributes & STATUS_IS_MOUNTED) != 0;
}

/* Puts `tree` over `fd`, and takes its place: a mount point can be neither renamed nor removed. */
static int put_over(int fd, int tree, const char *path) {
  if (sys_move_mount(tree, fd) < 0) fail("stage: protect", path);
  return close_with(fd, tree);
}

static int cover(int fd, int readonly, const char *path) {
  int tree = cover_clone(fd, path);
  if (readonly) cover_attributes(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, path);
  return put_over(fd, tree, path);
}

static int open_step(int directory, const char *name, const char *path) {
  int next = sys_openat2(directory, name, O_PATH | O_NOFOLLOW, NO_LINKS | RESOLVE_BENEATH);
  if (next < 0) fail("stage: protect", path);
  return next;
}

/* The entry that launch saw, and nothing that took its place since. */
static int open_covered(int zone, const struct guard_cover *cover) {
  struct stat status;
  int fd = open_step(zone, cover->path, cover->path);
  if (fstat(fd, &status) < 0) fail("stage: protect", cover->path);
  if (status.st_dev != cover->identity.dev || status.st_ino != cover->identity.ino) fail_with(ESTALE, "stage: protect", cover->path);
  return fd;
}

/* Every directory on the way to a path is kept in its place, too. */
static void cover_way(int zone, const char *path) {
  char names[PATH_MAX];
  copy_text(names, sizeof names, path);
  int at = dup(zone);
  if (at < 0) fail("stage: dup", path);
  char *rest = NULL;
  for (char *name = strtok_r(names, "/", &rest), *following; (following = strtok_r(NULL, "/", &rest)); name = following) {
    int next = open_step(at, name, path);
    if (!is_mount_root(next)) next = cover(next, 0, path);
    close(at);
    at = next;
  }
  close(at);
}

/* The writable parts of a read-only directory are cloned before it is covered: a clone of a read-only mount is one. */
static void cover_with_kept(int zone, const struct guard_cover *holder) {
  int *tree = calloc(holder->kept + 1, sizeof *tree);
  if (!tree) fail("stage: memory", holder->path);
  for (size_t i = 1; i <= holder->kept; i++) {
    int fd = open_covered(zone, &holder[i]);
    tree[i] = cover_clone(fd, holder[i].path);
    close(fd);
  }
  close(cover(open_covered(zone, holder), 1, holder->path));
  for (size_t i = 1; i <= holder->kept; i++) close(put_over(open_covered(zone, &holder[i]), tree[i], holder[i].path));
  free(tree);
}

static void cover_path(int zone, const struct guard_cover *path) {
  cover_way(zone, path->path);
  if (path->kept) return cover_with_kept(zone, path);
  int fd = open_covered(zone, path);
  close(path->writable && is_mount_root(fd) ? fd : cover(fd, !path->writable, path->path));
}

/* ---- hidden files ---- */

static void put_empty(int root, int fd, const char *path) {
  struct stat status;
  if (fstat(fd, &status) < 0) fail("stage: hide", path);
  const char *name = S_ISDIR(status.st_mode) ? EMPTY_DIRECTORY : EMPTY_FILE;
  int empty = open_step(root, name + 1, name), tree = cover_clone(empty, path);
  cover_attributes(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, path);
  if (sys_move_mount(tree, fd) < 0) fail("stage: hide", path);
  close(tree), close(empty), close(fd);
}

/* -1 = it is gone by now and cannot be read; launch covers the one that takes its place. */
static int open_hidden(int zone, const char *path) {
  int fd = sys_openat2(zone, path, O_PATH | O_NOFOLLOW, NO_LINKS | RESOLVE_BENEATH);
  if (fd < 0 && errno != ENOENT && errno != ENOTDIR) fail("stage: hide", path);
  return fd;
}

/* Where a command could rename the directories above a hidden file, a pattern with a slash would not find it in the next run, and a layer
 * would show it as removed. */
static void keep_way(int zone, const char *path) {
  int fd = open_hidden(zone, path);
  if (fd < 0) return;
  close(fd);
  cover_way(zone, path);
}

void cover_hide(int root, int zone, const struct guard_cover *path, int is_writable) {
  if (is_writable) keep_way(zone, path->path);
  int fd = open_hidden(zone, path->path);
  if (fd < 0) return;
  if (path->hidden != HIDDEN_STEP) return put_empty(root, fd, path->path);
  close(is_mount_root(fd) ? fd : cover(fd, 0, path->path));
}

/* ---- a zone ---- */

void cover_zone(int root, int zone, const struct guard_zone *found, int is_writable) {
  for (size_t i = 0; i < found->covers; i += 1 + found->cover[i].kept)
    if (!found->cover[i].hidden) cover_path(zone, &found->cover[i]);
  for (size_t i = 0; i < found->covers; i++)
    if (found->cover[i].hidden) cover_hide(root, zone, &found->cover[i], is_writable);
}
