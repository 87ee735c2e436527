/* The outcome of a run as launch saw it, and the JSON line that tells the runner. src/backends/outcome.ts has its meaning. */
#ifndef LLM_DO_STATUS_H
#define LLM_DO_STATUS_H

#include "chain.h"
#include "guard.h"

#include <stddef.h>
#include <stdio.h>

/* Of CAUSE_SETUP and CAUSE_LOST; a command may end with them, too. */
#define EXIT_OF_SETUP 125
#define EXIT_OF_LOST 137
/* Of CAUSE_PROTECTED. */
#define EXIT_OF_PROTECTED 126

/* CAUSE_SETUP promises that the command never ran. CAUSE_LOST: it had started, and nothing reported its end. */
enum cause { CAUSE_EXIT, CAUSE_DEADLINE, CAUSE_CPU_TIME, CAUSE_MEMORY, CAUSE_CANCELLED, CAUSE_SETUP, CAUSE_EXEC, CAUSE_LOST, CAUSE_PROTECTED };

struct outcome {
  enum cause cause;
  int wait_status;  /* of the command; -1 while unknown */
  int cancelled_by; /* signal number, 0 = the leash */
  int error;        /* errno of a failed step, 0 without one */
  char step[32];
  char path[256];
  char detail[1024]; /* what the engine printed */
  uint64_t begun_ns, started_ns, ended_ns;
  long long cpu_us, peak_bytes, peak_pids;
  long long oom_kills, pids_refused, throttled_us, read_bytes, write_bytes; /* -1 without such a counter */
  unsigned killed;
  const struct guard *guard; /* what it saw; NULL = nothing ran */
};

/* The line of JSON, on the heap; NULL when memory is short. */
char *status_line(const struct outcome *outcome, size_t *size);

/* What it saw, as members of a JSON object, each with a comma before it; nothing where there is nothing to tell. */
void status_put_guard(FILE *out, const struct guard *guard);

/* Writes one line of JSON. Returns 0, or -1 when the runner cannot be told. */
int status_write(int fd, const struct outcome *outcome);

/* Exit status of launch: the command's own, 128+signal, 124, 125, 126, 127, 130. */
int status_exit_code(const struct outcome *outcome);

/* One line for people on stderr, for when nobody reads the JSON. */
void status_print(const struct outcome *outcome);

#endif
