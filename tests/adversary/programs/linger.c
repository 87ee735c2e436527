/* linger MARK SECONDS: a daemon that has left its parent, its session and every signal behind. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
  if (count != 3) return 2;
  if (fork()) return 0;
  setsid();
  if (fork()) return 0;
  for (int number = 1; number < 65; number++) signal(number, SIG_IGN);
  for (int fd = 0; fd < 64; fd++) close(fd);
  alarm(0);
  sleep((unsigned)atoi(words[2]));
  return 0;
}
