/* lock SECONDS PATH...: takes every lock there is on each path, then waits. */
#include "answer.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

int main(int count, char **words) {
  for (int at = 2; at < count; at++) {
    int fd = open(words[at], O_RDONLY | O_CLOEXEC);
    answer(words[at], fd < 0 ? -1 : flock(fd, LOCK_EX | LOCK_NB));
  }
  puts("locked");
  fflush(stdout);
  sleep(count > 1 ? (unsigned)atoi(words[1]) : 1);
  return 0;
}
