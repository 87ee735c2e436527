/* exchange ONE OTHER: exchanges two names as fast as the kernel does it, until it is killed, its parent ends or two minutes are over. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  alarm(120);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) return 1;
  for (;;) renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
}
