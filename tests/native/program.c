/*
 * program FILE NAME...   prints, for each name, by which plan the client runs it: the word of the key, and whether the plan of FILE, a launch
 * file, shows it. PATH is the caller's.
 */
#include "client/program.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct launchfile file;
  const char *problem;
  size_t size;
  int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
  char *bytes = fd < 0 ? NULL : read_all(fd, LAUNCHFILE_MAX, &size);
  if (!bytes || launchfile_check(bytes, size, &file, &problem) < 0) errx(2, "no launch file");
  for (char **name = argv + 2; *name; name++) {
    struct program program;
    program_find(*name, getenv("PATH"), &program);
    printf("%s%c%s%c", program.key, 0, program_is_shown(&program, &file) ? "shown" : "hidden", 0);
  }
  fflush(stdout);
  _exit(0); /* what is kept is never given back, as in the client */
}
