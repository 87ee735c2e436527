/*
 * program FILE NAME...   prints, for each name, by which plan the client runs it: the word of the key, and whether the plan of FILE, a launch
 * file, shows it. PATH is the caller's.
 */
#include "client/program.h"
#include "load.h"

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  struct launchfile file = load_launchfile(argv[1]);
  for (char **name = argv + 2; *name; name++) {
    struct program program;
    program_find(*name, getenv("PATH"), &program);
    printf("%s%c%s%c", program.key, 0, program_is_shown(&program, &file) ? "shown" : "hidden", 0);
  }
  end(0);
}
