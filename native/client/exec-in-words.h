/* The words of `exec --in`: what they ask for, and the block that the sandbox gets (lib/init-protocol.h). */
#pragma once

#include <stdint.h>

#define EXEC_IN_VARIABLES_MAX 256

struct exec_in_words {
  const char *name; /* of the sandbox; NULL = not given */
  const char *form; /* of the JSON result; NULL = none */
  const char *directory;
  const char *timeout; /* as it is written */
  uint64_t timeout_ms; /* 0 = none */
  int reports; /* for Node: to REPORT_FD */
  int has_terminal, state /* EXEC_IN_KEEPS, EXEC_IN_RESETS */, variables;
  const char *variable[EXEC_IN_VARIABLES_MAX];
  char **command;
};

/* If an option comes twice, the last one counts. Returns 0, or -1 where Node has to read the words. */
int exec_in_read(char **words, struct exec_in_words *asked);

/* A sealed memfd, or -1 with errno. */
int exec_in_block(const struct exec_in_words *asked);
