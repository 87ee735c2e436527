/*
 * Fills a plan for any directory in for the directory that it is in, as the client does: fill PROGRAM [DIRECTORY...] <PLAN >FILLED. Exits with 1 and says
 * why on stdout where the plan does not serve the directory, with 2 where something that it was made from has changed.
 */
#include "lib/any-directory.h"
#include "runner/freshness.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static struct places places;
  struct launchfile plan, filled;
  const char *problem = "", *why, *program = argc > 1 ? argv[1] : "";
  size_t size;
  char *bytes = read_all(STDIN_FILENO, LAUNCHFILE_MAX, &size);
  if (argc < 2 || !bytes || launchfile_check(bytes, size, &plan, &problem) < 0) return fputs(problem, stderr), 3;
  for (why = places_begin(&places), argv += 2; !why && *argv; argv++) why = places_add(&places, *argv, strlen(*argv));
  if (why || (why = places_unfit(&places, &plan, program))) return puts(why), 1;
  if (places_fill(&places, &plan, &filled) < 0) return perror("fill"), 3;
  if (!is_fresh(&filled)) return puts("something has changed"), 2;
  return fwrite(filled.bytes, 1, filled.size, stdout) == filled.size ? 0 : 3;
}
