/*
 * swap A B PAUSE: exchanges two names of a directory until its input ends, PAUSE microseconds between two exchanges. Prints a line
 * after the first. What another user does to a directory of its own while root works there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  struct pollfd input = {0, POLLIN, 0};
  for (unsigned long turn = 0;; turn++) {
    if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) < 0) return fprintf(stderr, "swap: %s\n", strerror(errno)), 1;
    if (turn == 0) puts("swapping"), fflush(stdout);
    if (turn % 64 == 0 && poll(&input, 1, 0) > 0) return 0;
    usleep((useconds_t)atoi(argv[3]));
  }
}
