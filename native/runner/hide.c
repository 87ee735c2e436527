/* Hides what has appeared while the command runs: in the sandbox, something empty is mounted over it. */
#include "runner/run.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The only child; 0 = it has none, or the kernel does not list them. */
static pid_t child_of(pid_t parent) {
  char path[64], text[16];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  (void)read_small(AT_FDCWD, path, text, sizeof text);
  return atoi(text);
}

/* bwrap's monitor has it as its child. A pid that is the same after it was opened was no other's meanwhile. */
static int open_init(const struct run *run) {
  if (run->engine.pid != run->engine.stager) return sys_pidfd_open(run->engine.pid);
  pid_t init = child_of(run->engine.pid);
  int fd = init > 0 ? sys_pidfd_open(init) : (errno = ESRCH, -1);
  if (fd < 0 || child_of(run->engine.pid) == init) return fd;
  return close_with(fd, (errno = ESRCH, -1));
}

#define LOOK_FLAGS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* A directory above it that the command has renamed meanwhile is found with it by the next walk. */
static void keep_step(const char *directory) {
  int point = sys_openat2(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_NOFOLLOW, LOOK_FLAGS);
  if (point < 0) return;
  int tree = sys_open_tree(point, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
  if (tree < 0 || sys_move_mount(tree, point) < 0) _exit(errno);
  close(tree), close(point);
}

/* As the stager does for what is there before (sandbox/root-fs.c). */
static void keep_way(char *path, size_t zone) {
  for (char *slash = strchr(path + zone + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    keep_step(path);
    *slash = '/';
  }
}

/* In the namespaces of init, as their owner. */
static _Noreturn void hide_inside(int init, const struct guard_zone *zone, const char *path, mode_t type) {
  char at[PATH_MAX + PATH_MAX];
  snprintf(at, sizeof at, "%s/%s", zone->target, path);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
  if (setns(init, CLONE_NEWUSER | CLONE_NEWNS) < 0) _exit(errno);
  int empty = sys_open_tree(AT_FDCWD, S_ISDIR(type) ? EMPTY_DIRECTORY : EMPTY_FILE, OPEN_TREE_CLONE);
  if (empty < 0) _exit(errno);
  if (zone->is_writable) keep_way(at, strlen(zone->target));
  int point = sys_openat2(AT_FDCWD, at, O_PATH | O_NOFOLLOW, LOOK_FLAGS);
  if (point < 0) _exit(errno == ENOENT || errno == ENOTDIR ? 0 : errno); /* gone meanwhile */
  if ( sys_mount_setattr(empty, AT_EMPTY_PATH, &attr) < 0 || sys_move_mount(empty, point) < 0) _exit(errno);
  _exit(0);
}

int run_hide(void *of, const struct guard_zone *zone, const char *path, mode_t type) {
  struct run *run = of;
  int init = open_init(run), status = 0;
  pid_t child = init < 0 ? -1 : sys_clone_beside();
  if (child == 0) hide_inside(init, zone, path, type);
  int error = child < 0 ? errno : waitpid(child, &status, __WCLONE) < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  if (init >= 0) close(init);
  if (error == 0 || run->engine.is_gone) return 0;
  run_record_failure(run, error, "launch: hide", path);
  return errno = error, -1;
}
