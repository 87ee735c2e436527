/* variables FILE   prints the environment that the client gives the command by the rules of FILE, each variable ended by NUL. */
#include "client/environment.h"
#include "load.h"

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  struct launchfile file = load_launchfile(argv[1]);
  char **all = command_environment(&file, (char *[]){NULL});
  if (!all) errx(2, "no memory");
  for (char **one = all; *one; one++) fwrite(*one, 1, strlen(*one) + 1, stdout);
  end(0);
}
