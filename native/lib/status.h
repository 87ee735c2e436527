/* The outcome of a run as launch saw it, and the JSON line that tells the runner. src/backends/outcome.ts has its meaning. */
#pragma once

#include "lib/contract.h"
#include "lib/init-protocol.h"
#include "lib/guard.h"
#include "lib/net-protocol.h"
#include "lib/observer-protocol.h"

#include <stddef.h>
#include <stdio.h>

struct outcome {
  enum cause cause;
  int wait_status;  /* of the command; -1 while unknown */
  int cancelled_by; /* signal number, 0 = the caller is gone */
  int error;        /* errno of a failed step, 0 without one */
  uint64_t begun_ns, started_ns, ended_ns;
  long long cpu_us, peak_bytes, peak_pids;
  long long oom_kills, pids_refused, throttled_us, read_bytes, write_bytes; /* -1 without such a counter */
  unsigned killed;
  const char *full[FULL_MAX]; /* targets of scratch file systems without room; ended by NULL, or at FULL_MAX */
  const struct guard *guard; /* what it saw; NULL = nothing ran */
  const struct net_report *network; /* NULL = not restricted */
  const struct observed_report *observed; /* NULL = nobody has looked */
  const char *layer; /* directory of what the command changed in copy-on-write zones; NULL = nothing */
  /* Where it failed. */
  char step[32];
  char path[256];
  char detail[1024]; /* what the engine printed */
};

/* The line of JSON, valid until the next text (lib/text.h); NULL when memory is short. */
const char *status_line(const struct outcome *outcome, size_t *size);

/* What it saw, as members of a JSON object, each with a comma before it; nothing where there is nothing to tell. */
void status_put_guard(FILE *out, const struct guard *guard);

/* What a restricted command has reached, likewise. */
void status_put_network(FILE *out, const struct net_report *report);

/* Writes one line of JSON. Returns 0, or -1 when it cannot be written. */
int status_write(int fd, const struct outcome *outcome);

/* Exit status of launch: the command's own, 128+signal, 124, 125, 126, 127, 130. */
int status_exit_code(const struct outcome *outcome);

/* One line for people on stderr, for when there is no reader of the JSON. */
void status_print(const struct outcome *outcome);
