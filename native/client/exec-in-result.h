/*
 * How a command in a living sandbox ended, told as the client tells of a run (client/result.h): its plan is a small one that is made here, of the
 * words that such a command has.
 */
#pragma once

#include "client/capture.h"
#include "client/exec-in-words.h"
#include "lib/status.h"

#include <signal.h>

/* Pipes for its output where a JSON result is wanted. 0, or -1 with errno. */
int exec_in_capture(const struct exec_in_words *words, struct capture *capture);

struct exec_in_end {
  const struct outcome *outcome;
  const struct capture *capture;
  const sigset_t *before; /* the caller's signal mask */
  unsigned state;         /* STATE_* */
};

/* Ends this process as the command ended. Returns an exit status where that cannot be told. */
int exec_in_tell(const struct exec_in_words *words, const struct exec_in_end *end);
