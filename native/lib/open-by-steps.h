/*
 * openat2(2) by hand, for where it is refused: the filter of a sandbox of our own does, since the mode of a new file lies in memory there
 * (src/seccomp/rules.ts). Stricter where it must be: no link is followed, whatever `resolve` says, and `..` is refused.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The descriptor, or -1 with errno: ENOSYS for flags that cannot be kept by hand. */
int open_by_steps(int directory, const char *path, uint64_t flags, uint64_t resolve);

/* The part of struct statx (linux/stat.h, which cannot be included together with the C library's) that says whether it is a mount's root. */
struct statx_start {
  uint32_t mask, block_size;
  uint64_t attributes;
  unsigned char between[128];
  uint64_t mount_id; /* Linux 5.8 */
  unsigned char rest[104];
};
#define STATX_HAS_MOUNT_ID 0x00001000 /* STATX_MNT_ID, in `mask` */
#define STATX_MOUNT_ROOT 0x00002000 /* STATX_ATTR_MOUNT_ROOT, Linux 5.8 */

static inline int sys_statx(int fd, struct statx_start *status) {
  return (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0, status);
}
