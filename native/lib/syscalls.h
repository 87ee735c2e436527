/*
 * System calls newer than the C library, and the few structures that go with them.
 * Numbers come from <asm/unistd.h>; a kernel without one answers ENOSYS, which callers report like any other failure.
 */
#pragma once

#include "lib/open-by-steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000 /* Linux 5.12 */
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve) {
  struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
  int before = errno, fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
  if (fd >= 0 || errno != ENOSYS) return fd;
  fd = open_by_steps(dir, path, flags, resolve);
  if (fd >= 0) errno = before;
  return fd;
}

/* Entries that sys_getdents writes: one behind the other, `size` bytes each. */
struct directory_entry {
  uint64_t ino;
  int64_t next;
  unsigned short size;
  unsigned char type;
  char name[];
};

/* `room` is aligned to 8. Returns how many bytes it has filled, 0 at the end, or -1. */
static inline long sys_getdents(int directory, void *room, size_t size) { return syscall(SYS_getdents64, directory, room, size); }

static inline int sys_open_tree(int dir, const char *path, unsigned flags) {
  return (int)syscall(SYS_open_tree, dir, path, flags | OPEN_TREE_CLOEXEC);
}

static inline int sys_move_mount(int from, int to) {
  return (int)syscall(SYS_move_mount, from, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* To a path below `directory`. A link at its end is followed where `flags` has MOVE_MOUNT_T_SYMLINKS, and covered otherwise. */
static inline int sys_move_mount_at(int from, int directory, const char *path, unsigned flags) {
  return (int)syscall(SYS_move_mount, from, "", directory, path, MOVE_MOUNT_F_EMPTY_PATH | flags);
}

static inline int sys_mount_setattr(int fd, unsigned flags, struct mount_attr *attr) {
  return (int)syscall(SYS_mount_setattr, fd, "", flags | AT_EMPTY_PATH, attr, sizeof *attr);
}

static inline int sys_fsopen(const char *type) { return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC); }

static inline int sys_fsconfig(int fs, unsigned command, const char *key, const char *value) {
  return (int)syscall(SYS_fsconfig, fs, command, key, value, 0);
}

static inline int sys_fsmount(int fs, unsigned attributes) {
  return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
}

/* To the default by the kernel's own call: musl refuses the three real-time signals that its threads use, and leaves them
 * ignored if the caller had them so. A zeroed struct sigaction of the kernel says SIG_DFL on every architecture. */
static inline int sys_reset_signal(int signal) {
  static const uint64_t standard[8];
  return (int)syscall(SYS_rt_sigaction, signal, standard, NULL, 8);
}

static inline int sys_execveat(int directory, const char *path, char *const argv[], char *const env[], int flags) {
  return (int)syscall(SYS_execveat, directory, path, argv, env, flags);
}

static inline int sys_close_range(unsigned first, unsigned last) {
  return (int)syscall(SYS_close_range, first, last, 0);
}

/* Makes these the only descriptors, at 0 and up, to be inherited. By numbers above: none is overwritten before it is placed. */
static inline int place_descriptors(const int *from, int count) {
  int high[16];
  for (int fd = 0; fd < count; fd++)
    if ((high[fd] = fcntl(from[fd], F_DUPFD_CLOEXEC, count)) < 0) return -1;
  for (int fd = 0; fd < count; fd++)
    if (dup2(high[fd], fd) < 0) return -1;
  return sys_close_range((unsigned)count, ~0u);
}

static inline int sys_pivot_root(const char *new_root, const char *old_root) {
  return (int)syscall(SYS_pivot_root, new_root, old_root);
}

static inline pid_t sys_clone3(struct clone_args *args) { return (pid_t)syscall(SYS_clone3, args, sizeof *args); }

/* A child that ends with no signal, and of which waitpid speaks only with __WCLONE: it does not count among those that a process waits for. */
static inline pid_t sys_clone_beside(void) {
  struct clone_args args = {.exit_signal = 0};
  pid_t child = sys_clone3(&args);
  return child < 0 && errno == ENOSYS ? (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0) : child;
}

static inline int sys_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

static inline int sys_pidfd_send_signal(int pidfd, int signal) {
  return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}
