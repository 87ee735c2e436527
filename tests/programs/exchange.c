/* exchange ONE OTHER: exchanges two names for ever, as fast as the kernel does it; a name that is missing is waited for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  for (;;) renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
}
