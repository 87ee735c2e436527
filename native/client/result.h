/*
 * The client's report of a run: what people read, the JSON result, the line of the audit log.
 *
 * Theory of operation. Launch's line says how the run ended (lib/status.h). The plan has its words for each reason (V_REASON, V_DENIAL) and the
 * members of the JSON that it knows (V_RESULT, V_AUDIT). Node reports every run that needs more than that: a refusal in stderr, a hidden path, changes
 * that wait, a sandbox that failed. Both write the same bytes (tests/native/answer.system.test.ts).
 */
#pragma once

#include "client/capture.h"
#include "lib/status.h"

#define AUDIT_TIME sizeof "2026-01-02T03:04:05.678Z"

/* Members of a line of the audit log only; the hashes are SHA-256 in hexadecimal. */
struct audit_line {
  const char *decided_by; /* a rule of a worker, or `policy` */
  char time[AUDIT_TIME], argv_hash[65], previous_hash[65];
};

struct result {
  const struct launchfile *file;
  const char *status; /* the line of launch */
  char **command;
  const struct capture *capture;
  const char *decided_by;
  const char *applied; /* what was done about the changes of a copy-on-write run, for people; NULL or "" = nothing */
  /* Set by result_read. */
  struct ending ending; /* without its code */
  const struct exec_failure *failure; /* the command was not executed; NULL otherwise */
};

/* Reads how the run ended. Returns 0, or -1 for a line that does not say it. */
int result_read(struct result *result);

/* May the client report this end, as far as launch's line and the plan tell? */
int result_is_known(const struct result *result);

/* Are there changes to copy-on-write zones? Then that is not all. */
int result_has_layer(const struct result *result);

/* The same, as far as the captured streams and the command tell: those must be complete, and this UTF-8. */
int result_is_plain(const struct result *result);

/* May the output, captured to its end or kept by launch, name something that the walls have refused, or that is lost? Node finds out. */
int result_needs_words(const struct result *result);

/* The message without the line of what was dropped; valid until the next one. Empty when the exit code or the signal says it all. */
const char *result_message(const struct result *result);

/* The plan's hint, or that of a command that was not executed; empty without one. */
const char *result_hint(const struct result *result);

/* SIGKILL...; SIG34 for one without a name. Valid until the next one. */
const char *signal_name(int number);

/* Prints what people read. Returns 0, or -1 when it cannot be written. */
int result_print(const struct result *result, int fd);

/*
 * Ends this process. A run that a signal has cancelled ends by the same one, so a shell leaves its loop and systemd sees no failure. Not by
 * SIGQUIT, which dumps core. `before` is the caller's signal mask.
 */
_Noreturn void result_leave(const struct ending *ending, const sigset_t *before);

/* A number of launch's line, -1 when it is missing. */
long long status_number(const char *status, const char *key);

/* ---- JSON (client/result-json.c) ---- */

int result_has_form(const char *name);

/* Is there a result of a known form, and are streams captured for it? Without a result the streams pass through. */
int result_is_sound(const struct launchfile *file);

/* Writes the JSON result in the form of V_RESULT, one line. Returns 0, or an errno. */
int result_write(const struct result *result, int fd);

/* Writes a line of the audit log. Returns 0, or an errno. */
int result_write_record(const struct result *result, const struct audit_line *line, int fd);
