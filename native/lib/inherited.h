/* Attributes that a process inherits and no plan holds: a sandbox that was built under other attributes must not serve the caller. */
#pragma once

#include <stdint.h>

#define STANDING_LIMITS 16 /* RLIM_NLIMITS */
#define STANDING_PROCESSORS 16 /* words of 64 bits: 1024 processors, the C library's cpu_set_t */

struct inherited {
  int64_t nice, scheduler;
  uint64_t processors[STANDING_PROCESSORS];
  uint64_t limits[STANDING_LIMITS][2];
};

/* Of this process. 0, or -1 when it cannot be read. */
int inherited_read(struct inherited *inherited);
