#include "client/exec-in-result.h"

#include "lib/text.h"
#include "client/result.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Bytes kept of each stream: the default of a run (src/policy/keys/resources.ts). */
#define OUTPUT_CAP "1048576"

/* ---- the plan ---- */

/* The words for people of a run that ends for this reason. */
static void add_reason(FILE *out, const char *reason, const char *message, const char *hint) { put_word(out, "reason"), put_word(out, reason), put_word(out, message), put_word(out, hint); }

/* Of STATE_*; empty for the others. */
static const char *const WARNINGS[] = {
    [STATE_NONE] = "",
    [STATE_KEPT] = "",
    [STATE_UNCHANGED] = "--keep-state: the earlier state remains, because the shell left no whole one at its exit (after exec, or with a trap for EXIT)",
    [STATE_TOO_LARGE] = "--keep-state: the earlier state remains, because that of this command is larger than 1 MiB",
};

static const char *warning(unsigned state) { return state <= STATE_TOO_LARGE ? WARNINGS[state] : ""; }

static void add_result(FILE *out, const struct exec_in_words *words, const char *said) {
  if (!words->form) return;
  put_word(out, "capture"), put_word(out, OUTPUT_CAP);
  put_word(out, "result"), put_word(out, words->form);
  const char *quote = said[0] ? "\"" : "";
  fprintf(out, "\"sandbox\":\"%s\",\"warnings\":[%s%s%s]%c", words->name, quote, said, quote, 0); /* neither has a character that JSON escapes */
}

static int make_plan(const struct exec_in_words *words, const char *said, struct launchfile *file) {
  static char *bytes;
  static size_t size;
  const char *problem;
  char stopped[64];
  FILE *out = open_memstream(&bytes, &size);
  if (!out) return -1;
  snprintf(stopped, sizeof stopped, "stopped after %s (--timeout)", words->timeout ? words->timeout : "");
  put_word(out, LAUNCH_FILE_MAGIC);
  add_result(out, words, said);
  add_reason(out, "timeout", stopped, "raise --timeout");
  add_reason(out, "seccomp", "killed by the system call filter", "llm-do run --seccomp nested ..., or a 64-bit build of the program");
  add_reason(out, "lost", "the sandbox has ended before the command, or has not taken it", "llm-do ps --ended");
  put_word(out, "end");
  return fclose(out) == 0 ? launchfile_check(bytes, size, file, &problem) : -1;
}

int exec_in_capture(const struct exec_in_words *words, struct capture *capture) {
  struct launchfile file;
  return make_plan(words, "", &file) < 0 ? -1 : capture_open(capture, &file);
}

/* ---- its end ---- */

#define PATH_SHOWN 240

/* A command inside may have named the directory. The name must not look like another message, or move the cursor. */
static const char *spell(const char *path) {
  static char text[PATH_SHOWN + 8];
  size_t used = 0;
  text[0] = 0;
  for (; *path && used < PATH_SHOWN; path++)
    used += (size_t)snprintf(text + used, sizeof text - used, *path >= ' ' && *path <= '~' ? "%c" : "\\x%02x", (unsigned char)*path);
  return text;
}

/* A quote in the path would end its word. */
static const char *path_hint(const char *name, const char *path) {
  static char hint[320];
  int length = snprintf(hint, sizeof hint, "llm-do exec --in %s --workdir / -- ls -ld '%s'", name, path);
  return length < (int)sizeof hint && !strchr(path, '\'') && strcmp(spell(path), path) == 0 ? hint : "leave out --workdir";
}

/* Node has no part in it, so what could not be set up is said in the system's words. */
static void explain(const struct exec_in_words *words, const struct outcome *outcome, struct result *result) {
  static char what[320];
  static struct exec_failure failure = {.what = what};
  int is_kept = words->state == EXEC_IN_KEEPS && !words->directory;
  failure.hint = is_kept ? "--workdir /, or --keep-state=reset" : path_hint(words->name, outcome->path[0] ? outcome->path : "/");
  if (result->ending.reason != REASON_SETUP || result->failure) return;
  snprintf(what, sizeof what, "%s: %s", outcome->path[0] ? spell(outcome->path) : outcome->step, strerror(outcome->error));
  failure.code = ending_of(outcome).code;
  result->failure = &failure;
}

#define REPORT_FD 3

static int report(const struct exec_in_end *end, int status) {
  signal(SIGPIPE, SIG_IGN);
  return dprintf(REPORT_FD, "%u\n", end->state) > 0 && status_write(REPORT_FD, end->outcome) == 0 ? status : EXIT_SETUP;
}

int exec_in_tell(const struct exec_in_words *words, const struct exec_in_end *end) {
  struct launchfile file;
  size_t size;
  struct result result = {.file = &file, .command = words->command, .capture = end->capture};
  int status = ending_of(end->outcome).exit_status;
  const char *said = warning(end->state);
  if (words->reports) return report(end, status);
  if (make_plan(words, said, &file) < 0 || !(result.status = status_line(end->outcome, &size)) || result_read(&result) < 0) return status;
  explain(words, end->outcome, &result);
  if (!words->form && said[0]) fprintf(stderr, "llm-do: warning: %s\n", said);
  signal(SIGPIPE, SIG_IGN);
  int error = words->form ? result_write(&result, 1) : result_print(&result, 2) < 0 ? errno : 0;
  if (error == 0 || error == EPIPE) result_leave(&result.ending, end->before);
  fprintf(stderr, "llm-do: error OUTPUT_FAILED: the result cannot be written: %s\n", strerror(error));
  return EXIT_SETUP;
}
