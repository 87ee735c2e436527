/*
 * The observer's report to launch at the end of a run (runner/observer.c). Both are one program, but the observer reads input of a hostile
 * command, so its report is checked and bounded like anything else.
 *
 *   launch ──end of file: report and end──► observer ──struct observed_head, rows──► launch      SOCK_STREAM
 */
#pragma once

#include "lib/contract.h"

#include <stdint.h>

#define OBSERVED_ROWS_MAX 256
#define OBSERVED_PATH_MAX 1024 /* with its NUL; longer ones are only counted */

/* One thing that the sandbox refused. */
struct observed_row {
  uint32_t what;  /* enum observation */
  uint32_t count; /* how often */
  uint64_t last;  /* which call of all it was the last time */
  char path[OBSERVED_PATH_MAX]; /* inside; or ADDRESS:PORT */
};

struct observed_head {
  uint32_t rows;
  uint32_t omitted; /* more than fit, or too long */
  uint32_t unread;  /* calls whose arguments could not be read, for want of rights */
  uint32_t unused;
};

/* Launch's copy of it when the run is over. */
struct observed_report {
  struct observed_head head;
  int is_lost; /* the observer has ended before it wrote one, and each observed call since then has failed with ENOSYS */
  struct observed_row row[OBSERVED_ROWS_MAX];
};
