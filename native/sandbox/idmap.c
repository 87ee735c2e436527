#include "sandbox/idmap.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int write_once(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t length = strlen(text);
  int written = write(fd, text, length) == (ssize_t)length ? 0 : -1;
  return close_with(fd, written);
}

static int map_ids(pid_t holder, uid_t uid, gid_t gid, uid_t to_uid, gid_t to_gid) {
  char path[64], map[64];
  snprintf(path, sizeof path, "/proc/%d/uid_map", holder);
  snprintf(map, sizeof map, "%u %u 1", uid, to_uid);
  if (write_once(path, map) < 0) return -1;
  snprintf(path, sizeof path, "/proc/%d/gid_map", holder);
  snprintf(map, sizeof map, "%u %u 1", gid, to_gid);
  return write_once(path, map);
}

/* A user namespace lives in a process: this one only waits to be killed, and its end sends no signal. */
int idmap_open(uid_t uid, gid_t gid, uid_t to_uid, gid_t to_gid) {
  struct clone_args args = {.flags = CLONE_NEWUSER};
  pid_t parent = getpid();
  pid_t holder = sys_clone3(&args);
  if (holder < 0) return -1;
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(0); /* it died before the line above */
    for (;;) pause();
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/user", holder);
  int namespace = map_ids(holder, uid, gid, to_uid, to_gid) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  int error = errno;
  kill(holder, SIGKILL);
  errno = error;
  return namespace;
}

void idmap_reap(void) {
  while (waitpid(-1, NULL, __WALL) > 0);
}

int idmap_apply(int tree, int map) {
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map};
  return sys_mount_setattr(tree, AT_RECURSIVE, &attr);
}
