#include "lib/children.h"

#include "lib/files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* One read gives a part of the list, which may end within a number: the number continues in the next part. */
int children_each(void (*each)(pid_t child, const void *context), const void *context) {
  char path[64], part[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  int count = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
  pid_t child = 0;
  ssize_t size = fd < 0 ? -1 : 0;
  while (fd >= 0 && (size = read(fd, part, sizeof part)) > 0)
    for (ssize_t i = 0; i < size; i++) {
      if (part[i] != ' ') {
        child = child * 10 + (part[i] - '0');
        continue;
      }
      each(child, context);
      child = 0, count++;
    }
  return close_with(fd, size < 0 ? -1 : count);
}

unsigned children_end(void) {
  unsigned killed = 0;
  int status;
  kill(-1, SIGKILL);
  while (waitpid(-1, &status, 0) > 0) killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return killed;
}

struct children_usage children_usage(void) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  uint64_t seconds = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  return (struct children_usage){seconds * 1000000 + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec), (uint64_t)usage.ru_maxrss * 1024};
}
