/* The first failure of a run, noted by any part. */
#include "runner/run.h"

void run_record_failure(struct run *run, int error, const char *step, const char *path) {
  run_record_failure_as(run, run->outcome.started_ns ? CAUSE_LOST : CAUSE_SETUP, error, step, path);
}

void run_record_failure_as(struct run *run, enum cause cause, int error, const char *step, const char *path) {
  if (run->outcome.step[0]) return; /* the first failure explains the others */
  run->outcome.cause = cause;
  run->outcome.error = error;
  copy_text(run->outcome.step, sizeof run->outcome.step, step);
  copy_text(run->outcome.path, sizeof run->outcome.path, path);
}

void run_forget_failure(struct run *run) {
  run->outcome.cause = CAUSE_EXIT;
  run->outcome.error = 0;
  run->outcome.step[0] = run->outcome.path[0] = 0;
}

_Noreturn void run_refuse(struct run *run, const char *step, const char *path) {
  run_record_failure(run, errno, step, path);
  run->finish(run);
}
