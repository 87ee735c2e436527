/*
 * llm-do: everything that runs on the host outside of a sandbox, in one program.
 *
 *   llm-do WORD...           the client (client/main.c)
 *   llm-do __NAME WORD...    the part of that name, started by Node or another part: __launch, __runs, ...
 *
 * Under its other name, llm-do-exec, every word is a word of a command line.
 */
#include "lib/programs.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static const struct part {
  const char *name;
  int (*main)(int argc, char **argv);
} PARTS[] = {
    {"launch", launch_main}, {"runs", runs_main}, {"layers", layers_main}, {"exec-in", exec_in_main}, {"guard", guard_main}, {"pool", pool_main},
};

static const struct part *find_part(const char *name) {
  for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
    if (strcmp(PARTS[i].name, name) == 0) return &PARTS[i];
  return NULL;
}

static int is_named(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash ? slash + 1 : path, name) == 0;
}

static int run_part(const struct part *part, int argc, char **argv) {
  argv[0] = (char *)part->name;
  prctl(PR_SET_NAME, part->name); /* for ps: the name of the program file says nothing */
  return part->main(argc, argv);
}

int main(int argc, char **argv) {
  int is_exec = argc > 0 && is_named(argv[0], "llm-do-exec"), has_verb = argc > 1 && !is_exec;
  const struct part *part = has_verb && strncmp(argv[1], "__", 2) == 0 ? find_part(argv[1] + 2) : NULL;
  if (part) return run_part(part, argc - 1, argv + 1);
  if (is_exec || (has_verb && strcmp(argv[1], "exec") == 0)) {
    int status = exec_in_by_name(argv + 2 - is_exec);
    if (status >= 0) return status;
  }
  return client_main(argc, argv);
}
