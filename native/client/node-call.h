/*
 * handover: how the client passes its call to node.
 *
 * Node reads some options wherever they stand on its command line (--env-file before the first `--`,
 * --experimental-config-file even behind it), and its environment and working directory decide what code it loads. So nothing of
 * the caller is on node's command line or in its environment: the words, the variables and the directory come by two descriptors,
 * whose numbers are in the one variable LLM_DO_CALL, `WORDS:DIRECTORY`. src/cli/call.ts reads them.
 */
#pragma once

#include <sys/types.h>

struct node_call {
  const char *first;  /* the verb, where the caller's words lack it; NULL for none */
  char *const *words; /* ended by NULL */
  int outcome;        /* descriptor of a run's outcome that node is to explain; -1 for none */
  pid_t parent;       /* what started us: node's parent, as long as it lives */
};

/*
 * Becomes NODE (an absolute path) with SCRIPT, which gets HANDOVER, the caller's environment and its directory. Returns when
 * that failed, with errno set.
 */
void node_call_exec(const char *node, const char *script, const struct node_call *handover);
