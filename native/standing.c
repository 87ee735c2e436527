#include "standing.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int standing_read(struct standing *standing) {
  cpu_set_t processors;
  memset(standing, 0, sizeof *standing); /* it is compared byte by byte */
  errno = 0;
  standing->nice = getpriority(PRIO_PROCESS, 0);
  standing->scheduler = syscall(SYS_sched_getscheduler, 0); /* musl's own answers ENOSYS */
  if (errno || sched_getaffinity(0, sizeof processors, &processors) < 0) return -1;
  memcpy(standing->processors, &processors, sizeof processors < sizeof standing->processors ? sizeof processors : sizeof standing->processors);
  for (int i = 0; i < STANDING_LIMITS; i++) {
    struct rlimit limit;
    if (getrlimit(i, &limit) < 0) return -1;
    standing->limits[i][0] = limit.rlim_cur;
    standing->limits[i][1] = limit.rlim_max;
  }
  return 0;
}
