/*
 * exchange DIRECTORY NAME TARGET SECONDS: on the host, as the owner of DIRECTORY. As soon as NAME is there it is exchanged for a
 * link to TARGET, again and again, so that a program that uses the path twice meets both. Prints `ready` first.
 */
#include "answer.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
  if (count != 5) return 2;
  const char *name = words[2], *link = ".exchange-link";
  if (chdir(words[1]) < 0) return answer(words[1], -1), 1;
  unlink(link);
  if (symlink(words[3], link) < 0) return answer(link, -1), 1;
  puts("ready");
  fflush(stdout);
  long swaps = 0;
  for (double end = now() + atof(words[4]); now() < end;)
    if (renameat2(AT_FDCWD, link, AT_FDCWD, name, RENAME_EXCHANGE) == 0) swaps++;
  printf("swaps %ld\n", swaps);
  return 0;
}
