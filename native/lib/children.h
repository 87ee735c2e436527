#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * Calls `each` for every child of the calling process, which has one thread and reaps none meanwhile. Returns how many there are, or -1 with
 * errno where that cannot be read to its end.
 */
int children_each(void (*each)(pid_t child, const void *context), const void *context);

/* Kills everything that our signals reach, and reaps. Returns how many SIGKILL has ended: all others had ended before, or after a SIGTERM. */
unsigned children_end(void);

/* Of all that were reaped. */
struct children_usage {
  uint64_t cpu_us, peak_bytes;
};
struct children_usage children_usage(void);
