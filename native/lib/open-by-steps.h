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

/* struct statx (linux/stat.h, which cannot be included together with the C library's). */
struct file_status {
  uint32_t mask, block_size;
  uint64_t attributes;
  uint32_t links, uid, gid;
  uint16_t mode, spare;
  uint64_t inode, size, blocks, attributes_mask;
  struct {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t spare;
  } accessed, born, changed, modified;
  uint32_t device_of[2], device[2];
  uint64_t mount;
  uint64_t more[13];
};
#define STATUS_MOUNT 0x00001000      /* STATX_MNT_ID, in `mask`: Linux 5.8 */
#define STATUS_IS_MOUNTED 0x00002000 /* STATX_ATTR_MOUNT_ROOT, in `attributes`: Linux 5.8 */

static inline int sys_statx(int fd, struct file_status *status) {
  return (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0, status);
}
