#include "lib/children.h"

#include "lib/files.h"

#include <fcntl.h>
#include <stdio.h>
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
