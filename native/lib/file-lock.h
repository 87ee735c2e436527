/*
 * A lock that the kernel holds, flock(2) on FILE.lock, and so lets go of with its holder: when that is killed, after a power cut, in another
 * container. Node, which has no flock, starts `runs lock` for it (src/os/file-lock.ts): the lock belongs to the open file, not to the process
 * that took it.
 *
 * FILE.lock is write-only (mode 0200). A sandbox that is shown it read-only cannot open it, and so cannot hold it against other runs.
 */
#pragma once

#include <sys/types.h>

#define LOCK_SUFFIX ".lock"

/* Opens, and creates, what is locked: a regular file and no link. Returns a descriptor, or -1 with errno. */
int lock_open(const char *path);

/* Waits until `patience_ms` are over, 0: not at all. Returns 0, or -1 with errno, EWOULDBLOCK while another holds it. */
int lock_take(int fd, unsigned patience_ms);

int lock_release(int fd);

/*
 * Keeps room for `bytes` more at the end of an open file, which does not become longer. Returns -1 with ENOSPC or EDQUOT where there is
 * none. A file system that cannot keep any is asked how much it has.
 */
int reserve_at_end(int fd, off_t bytes);
