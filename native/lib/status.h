/*
 * How a run ended, and the line of JSON that reports it. Only this file derives the reason, the exit status and the code of the error from what
 * was observed; Node, the client and docker take them from the line. src/backends/outcome.ts has the meaning of its other fields.
 */
#pragma once

#include "lib/contract.h"
#include "lib/init-protocol.h"
#include "lib/guard.h"
#include "lib/net-protocol.h"
#include "lib/observer-protocol.h"

#include <stddef.h>
#include <stdio.h>

/* Causes of an end, as the runner itself saw them. */
enum cause {
  CAUSE_EXIT,      /* the command ended without our doing */
  CAUSE_DEADLINE,
  CAUSE_CPU_TIME,
  CAUSE_MEMORY,
  CAUSE_DISK,
  CAUSE_CANCELLED,
  CAUSE_SETUP,     /* the command never ran */
  CAUSE_EXEC,      /* execve(2) of the command failed */
  CAUSE_LOST,      /* it had started, and nothing reported its end */
  CAUSE_PROTECTED,
};

/* Bytes of the end of stderr that a report looks at: as many as src/report/stderr-denials.ts reads. */
#define SAID_MAX (16 << 10)

struct outcome {
  enum cause cause;
  int is_filtered;  /* a system call filter is on: SIGSYS is its doing */
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
  const struct observed_report *observed; /* NULL = without an observer */
  const char *said; /* the end of stderr, hexadecimal; NULL = not kept */
  int has_grown;     /* CAUSE_DISK: writable zones, and not the layer */
  const char *layer; /* directory of what the command changed in copy-on-write zones; NULL = nothing */
  /* Where it failed. */
  char step[32];
  char path[256];
  char detail[1024]; /* what the engine printed */
};

/* Before a run has begun. */
#define OUTCOME_UNKNOWN {.wait_status = -1, .oom_kills = -1, .pids_refused = -1, .throttled_us = -1, .read_bytes = -1, .write_bytes = -1}

struct ending {
  enum reason reason;
  const char *code; /* of the error; empty where the command ran and its end is known */
  int exit_code;    /* of the command; -1 = it has none */
  int signal;       /* that ended it; 0 = none */
  int exit_status;  /* of our own process: the command's, 128+signal, 124, 125, 126, 127 or 137 */
};

/* As JSON has it. */
const char *reason_name(enum reason reason);

struct ending ending_of(const struct outcome *outcome);

struct exec_failure {
  const char *code, *what, *hint;
};

/* Why a command was not executed, for people; NULL for an errno without words. */
const struct exec_failure *exec_failure(int error, int is_interpreter);

/* The line of JSON, valid until the next text (lib/text.h); NULL when memory is short. */
const char *status_line(const struct outcome *outcome, size_t *size);

/* Its observations, as members of a JSON object, each with a comma before it; empty without any. */
void status_put_guard(FILE *out, const struct guard *guard);

/* Hosts that a restricted command has reached, likewise. */
void status_put_network(FILE *out, const struct net_report *report);

/* Writes one line of JSON. Returns 0, or -1 when it cannot be written. */
int status_write(int fd, const struct outcome *outcome);

/* One line for people on stderr, for a run without a reader of the JSON. */
void status_print(const struct outcome *outcome);
