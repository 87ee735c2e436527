#include "client/foreseen-end.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 4096

const struct foreseen_end EXIT = {.kind = "exit"};

/* ---- which one ---- */

/* A name that a terminal does not show as it is would have to be spelled. */
static int is_plain(const char *name) {
  for (const char *at = name; *at; at++)
    if (*at < ' ' || *at > '~') return 0;
  return *name != 0;
}

/*
 * The command could not be executed. Node explains it where the engine has printed why, or where the interpreter in a script's first line is
 * missing. In the shell's form the words stand in the place of stderr, so nothing may have been captured.
 */
static int find_failure(const struct result *result, struct foreseen_end *end) {
  const struct capture *capture = result->capture;
  if (!status_says(result->status, STATUS_DETAIL, "") || status_says(result->status, STATUS_STEP, "interpreter") || !is_plain(result->command[0])) return -1;
  if (capture->is_on && (capture->stream[0].seen > 0 || capture->stream[1].seen > 0)) return -1;
  *end = (struct foreseen_end){.kind = "exec", .number = status_number(result->status, STATUS_ERRNO)};
  return 0;
}

static int find_signal(const struct result *result, struct foreseen_end *end) {
  long long wait_status = status_number(result->status, STATUS_WAIT_STATUS);
  if (wait_status < 0 || (wait_status & 0x7f) == 0) return -1;
  if (status_number(result->status, STATUS_KILLED) != 0 || result_names_hidden_path(result)) return -1;
  *end = (struct foreseen_end){.kind = "signal", .number = wait_status & 0x7f, .signal = wait_status & 0x7f};
  return 0;
}

/* Of a command that was stopped: nobody is left to reap it where all were killed. As endOfCommand in src/backends/launch-status.ts. */
static long long signal_of(const char *status) {
  long long wait_status = status_number(status, STATUS_WAIT_STATUS);
  return wait_status >= 0 ? wait_status & 0x7f : status_number(status, STATUS_STARTED_NS) > 0 ? SIGKILL : 0;
}

static int is_for_programs(const struct result *result) {
  struct entry entry;
  return result->capture->is_on || launchfile_find(result->file, V_AUDIT, &entry);
}

/* An exit code of its own, after SIGTERM, is node's to write. */
static int find_deadline(const struct result *result, struct foreseen_end *end) {
  long long killed = status_number(result->status, STATUS_KILLED), signal = signal_of(result->status);
  if (signal == 0 && is_for_programs(result)) return -1;
  *end = (struct foreseen_end){.kind = "deadline", .number = killed > 1 ? 2 : killed, .signal = signal};
  return 0;
}

static int find_end(const struct result *result, struct foreseen_end *end) {
  const char *status = result->status;
  if (result_has_events(result)) return -1;
  if (status_says(status, STATUS_CAUSE, "exec")) return find_failure(result, end);
  if (status_says(status, STATUS_CAUSE, "exit")) return find_signal(result, end);
  return status_says(status, STATUS_CAUSE, "deadline") ? find_deadline(result, end) : -1;
}

/* Of an entry that begins with the kind and the number of an end. */
static int is_of(const struct foreseen_end *end, const char *const words[]) {
  uint64_t number;
  return strcmp(words[0], end->kind) == 0 && parse_number(words[1], INT32_MAX, &number) == 0 && (long long)number == end->number;
}

/* Whether node has foreseen it. */
static int find_ending(const struct launchfile *file, struct foreseen_end *end) {
  struct entry entry;
  size_t position = 0;
  uint64_t status;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb != V_ENDING || !is_of(end, entry.word)) continue;
    if (parse_number(entry.word[2], 255, &status) < 0) return 0;
    return end->status = (int)status, 1;
  }
  return 0;
}

int end_is_known(struct result *result, struct foreseen_end *end) {
  result->end = &EXIT;
  if (result_needs_no_words(result)) return 1;
  result->end = end;
  return find_end(result, end) == 0 && find_ending(result->file, end);
}

/* ---- what stands there ---- */

static int find_filling(const struct launchfile *file, const struct foreseen_end *end, const char *form, const char *slot, struct entry *filling) {
  size_t position = 0;
  while (launchfile_next(file, &position, filling))
    if (filling->verb == V_FILLING && strcmp(filling->word[0], form) == 0 && strcmp(filling->word[3], slot) == 0 && is_of(end, filling->word + 1)) return 0;
  return -1;
}

int filling_at(const struct launchfile *file, const struct foreseen_end *end, const char *form, const char *slot, struct entry *filling) {
  const struct foreseen_end by_signal = {.kind = "signal", .number = end->signal};
  if (end->signal && strcmp(slot, "signal") == 0) return find_filling(file, &by_signal, form, slot, filling);
  return find_filling(file, end, form, slot, filling) == 0 || (end != &EXIT && find_filling(file, &EXIT, form, slot, filling) == 0) ? 0 : -1;
}

const char *filling_mark(const struct entry *filling, const struct result *result, char *text, size_t room) {
  if (strcmp(filling->word[5], "program") == 0) return result->command[0];
  if (strcmp(filling->word[5], "killed") != 0) return "";
  snprintf(text, room, "%lld", status_number(result->status, STATUS_KILLED));
  return text;
}

/* ---- for people ---- */

/* A reader that has gone is no failure of ours. */
static int print(int fd, const char *text, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t sent = write(fd, text + done, length - done);
    struct pollfd takes = {fd, POLLOUT, 0};
    if (sent >= 0) done += (size_t)sent;
    else if (errno == EPIPE) return 0;
    else if (errno == EAGAIN) poll(&takes, 1, -1);
    else if (errno != EINTR) return done > 0 ? 0 : -1;
  }
  return 0;
}

int print_failure_message(const struct result *result, int fd) {
  char text[TEXT_MAX], killed[24];
  struct entry filling;
  if (find_filling(result->file, result->end, "message", "message", &filling) < 0) return -1;
  int length = snprintf(text, sizeof text, "%s%s%s", filling.word[4], filling_mark(&filling, result, killed, sizeof killed), filling.word[6]);
  return length < 0 || (size_t)length >= sizeof text ? -1 : print(fd, text, (size_t)length);
}

void print_exit_message(const struct result *result, int fd) {
  struct entry filling;
  if (!isatty(fd) || find_filling(result->file, &EXIT, "message", "message", &filling) < 0) return;
  (void)print(fd, filling.word[4], strlen(filling.word[4]));
}
