/*
 * Fills a plan for any directory in for the directory that it is in, as the client does: fill PROGRAM <PLAN >FILLED. Exits with 1 and says
 * why on stdout where the plan does not serve the directory, with 2 where something that it was made from has changed.
 */
#include "lib/any-directory.h"
#include "runner/freshness.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static struct place place;
  struct launchfile plan, filled;
  const char *problem = "", *why;
  size_t size;
  char *bytes = read_all(STDIN_FILENO, LAUNCHFILE_MAX, &size);
  if (argc != 2 || !bytes || launchfile_check(bytes, size, &plan, &problem) < 0) return fputs(problem, stderr), 3;
  if ((why = place_here(&place)) || (why = place_unfit(&place, &plan, argv[1]))) return puts(why), 1;
  if (place_fill(&place, &plan, &filled) < 0) return perror("fill"), 3;
  if (!is_fresh(&filled)) return puts("something has changed"), 2;
  return fwrite(filled.bytes, 1, filled.size, stdout) == filled.size ? 0 : 3;
}
