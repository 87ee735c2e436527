/* variables FILE   prints the environment that the client gives the command by the rules of FILE, each variable ended by NUL. */
#include "client/environment.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct launchfile file;
  const char *problem;
  size_t size;
  int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
  char *bytes = fd < 0 ? NULL : read_all(fd, LAUNCHFILE_MAX, &size);
  if (!bytes) err(2, "no launch file");
  if (launchfile_check(bytes, size, &file, &problem) < 0) errx(2, "%s", problem);
  char **all = command_environment(&file, (char *[]){NULL});
  if (!all) errx(2, "no memory");
  for (char **one = all; *one; one++) fwrite(*one, 1, strlen(*one) + 1, stdout);
  fflush(stdout);
  _exit(0); /* what is kept is never given back, as in the client */
}
