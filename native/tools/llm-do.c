/*
 * llm-do: every program of ours that runs on the host outside of a sandbox, in one file.
 *
 *   llm-do WORD...           the client (client/main.c)
 *   llm-do __NAME WORD...    the part of that name, for programs of ours only: __launch, __runs, ...
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
  int is_exec = argc > 0 && is_named(argv[0], "llm-do-exec");
  const struct part *part = argc > 1 && !is_exec && strncmp(argv[1], "__", 2) == 0 ? find_part(argv[1] + 2) : NULL;
  return part ? run_part(part, argc - 1, argv + 1) : client_main(argc, argv);
}
