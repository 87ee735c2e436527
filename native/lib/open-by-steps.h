/*
 * openat2(2) by hand, for where it is refused: the filter of a sandbox of our own does, since the mode of a new file lies in memory there
 * (src/seccomp/rules.ts). Stricter where it must be: no link is followed, whatever `resolve` says, and `..` is refused.
 */
#pragma once

#include <stdint.h>

/* The descriptor, or -1 with errno: ENOSYS for flags that cannot be kept by hand. */
int open_by_steps(int directory, const char *path, uint64_t flags, uint64_t resolve);
