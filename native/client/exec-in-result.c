#include "client/exec-in-result.h"

#include "client/result.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Bytes kept of each stream: the default of a run (src/policy/keys/resources.ts). */
#define OUTPUT_CAP "1048576"

/* ---- the plan ---- */

static void add(FILE *out, const char *word) { fwrite(word, 1, strlen(word) + 1, out); }

/* The words for people of a run that ends for this reason. */
static void add_reason(FILE *out, const char *reason, const char *message, const char *hint) { add(out, "reason"), add(out, reason), add(out, message), add(out, hint); }

static void add_result(FILE *out, const struct exec_in_words *words) {
  if (!words->form) return;
  add(out, "capture"), add(out, OUTPUT_CAP);
  add(out, "result"), add(out, words->form);
  fprintf(out, "\"sandbox\":\"%s\",\"warnings\":[]%c", words->name, 0); /* no name has a character that JSON escapes */
}

static int make_plan(const struct exec_in_words *words, struct launchfile *file) {
  static char *bytes;
  static size_t size;
  const char *problem;
  char stopped[64];
  FILE *out = open_memstream(&bytes, &size);
  if (!out) return -1;
  snprintf(stopped, sizeof stopped, "stopped after %s (--timeout)", words->timeout ? words->timeout : "");
  add(out, LAUNCH_FILE_MAGIC);
  add_result(out, words);
  add_reason(out, "timeout", stopped, "raise --timeout");
  add_reason(out, "seccomp", "killed by the system call filter", "llm-do run --seccomp nested ..., or a 64-bit build of the program");
  add_reason(out, "lost", "the sandbox has ended before the command, or has not taken it", "llm-do ps --ended");
  add(out, "end");
  return fclose(out) == 0 ? launchfile_check(bytes, size, file, &problem) : -1;
}

int exec_in_capture(const struct exec_in_words *words, struct capture *capture) {
  struct launchfile file;
  return make_plan(words, &file) < 0 ? -1 : capture_open(capture, &file);
}

/* ---- its end ---- */

/* Node has no part in it, so what could not be set up is said in the system's words. */
static void explain(const struct outcome *outcome, struct result *result) {
  static char what[320];
  static struct exec_failure failure = {.what = what, .hint = "llm-do exec --in NAME -- ls -ld DIR"};
  if (result->ending.reason != REASON_SETUP || result->failure) return;
  snprintf(what, sizeof what, "%s: %s", outcome->path[0] ? outcome->path : outcome->step, strerror(outcome->error));
  failure.code = ending_of(outcome).code;
  result->failure = &failure;
}

int exec_in_tell(const struct exec_in_words *words, const struct exec_in_end *end) {
  struct launchfile file;
  size_t size;
  struct result result = {.file = &file, .command = words->command, .capture = end->capture};
  int status = ending_of(end->outcome).exit_status;
  if (make_plan(words, &file) < 0 || !(result.status = status_line(end->outcome, &size)) || result_read(&result) < 0) return status;
  explain(end->outcome, &result);
  signal(SIGPIPE, SIG_IGN);
  int error = words->form ? result_write(&result, 1) : result_print(&result, 2) < 0 ? errno : 0;
  if (error == 0 || error == EPIPE) result_leave(&result.ending, end->before);
  fprintf(stderr, "llm-do: error OUTPUT_FAILED: the result cannot be written: %s\n", strerror(error));
  return EXIT_SETUP;
}
