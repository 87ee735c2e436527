/* filter FILE MOST: the numbers from 0 to MOST that native/sandbox/seccomp-eval.c says the filter in FILE lets through, one a line. */
#include "sandbox/seccomp-eval.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  static struct sock_filter steps[BPF_MAXINSNS];
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  struct sock_fprog program = {(unsigned short)fread(steps, sizeof *steps, BPF_MAXINSNS, file), steps};
  for (int number = 0; number <= atoi(argv[2]); number++)
    if (filter_lets_through(&program, number)) printf("%d\n", number);
  return fclose(file);
}
