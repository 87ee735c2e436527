#include "lib/inherited.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int inherited_read(struct inherited *inherited) {
  cpu_set_t processors;
  memset(inherited, 0, sizeof *inherited); /* it is compared byte by byte */
  errno = 0;
  inherited->nice = getpriority(PRIO_PROCESS, 0);
  inherited->scheduler = syscall(SYS_sched_getscheduler, 0); /* musl's own answers ENOSYS */
  if (errno || sched_getaffinity(0, sizeof processors, &processors) < 0) return -1;
  memcpy(inherited->processors, &processors, sizeof processors < sizeof inherited->processors ? sizeof processors : sizeof inherited->processors);
  for (int i = 0; i < STANDING_LIMITS; i++) {
    struct rlimit limit;
    if (getrlimit(i, &limit) < 0) return -1;
    inherited->limits[i][0] = limit.rlim_cur;
    inherited->limits[i][1] = limit.rlim_max;
  }
  return 0;
}
