#include "client/failure-message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 4096

struct end {
  const char *kind; /* of a V_MESSAGE entry */
  long long number;
};

/* A detail is the engine's own, and a missing interpreter is named by the script: both are told by node. */
static int find_failure(const char *status, struct end *end) {
  if (!status_says(status, STATUS_DETAIL, "") || status_says(status, STATUS_STEP, "interpreter")) return -1;
  *end = (struct end){"exec", status_number(status, STATUS_ERRNO)};
  return 0;
}

static int find_signal(const struct result *result, struct end *end) {
  long long wait_status = status_number(result->status, STATUS_WAIT_STATUS);
  if (wait_status < 0 || (wait_status & 0x7f) == 0) return -1;
  if (status_number(result->status, STATUS_KILLED) != 0 || result_names_hidden_path(result)) return -1;
  *end = (struct end){"signal", wait_status & 0x7f};
  return 0;
}

static int find_end(const struct result *result, struct end *end) {
  const char *status = result->status;
  if (result_has_events(result)) return -1;
  if (status_says(status, STATUS_CAUSE, "exec")) return find_failure(status, end);
  if (status_says(status, STATUS_CAUSE, "exit")) return find_signal(result, end);
  if (!status_says(status, STATUS_CAUSE, "deadline")) return -1;
  long long killed = status_number(status, STATUS_KILLED);
  *end = (struct end){"deadline", killed > 1 ? 2 : killed};
  return 0;
}

static int find_message(const struct launchfile *file, const struct end *end, struct entry *message) {
  size_t position = 0;
  uint64_t number;
  while (launchfile_next(file, &position, message))
    if (message->verb == V_MESSAGE && strcmp(message->word[0], end->kind) == 0 && parse_number(message->word[1], INT32_MAX, &number) == 0 &&
        (long long)number == end->number)
      return 0;
  return -1;
}

/* A name that a terminal does not show as it is would have to be spelled. */
static int is_plain(const char *name) {
  for (const char *at = name; *at; at++)
    if (*at < ' ' || *at > '~') return 0;
  return *name != 0;
}

static int fill(const struct result *result, const struct entry *message, char *text, size_t room) {
  const char *slot = message->word[4], *program = result->command[0];
  char killed[24];
  snprintf(killed, sizeof killed, "%lld", status_number(result->status, STATUS_KILLED));
  if (strcmp(slot, "program") == 0) {
    if (!is_plain(program)) return -1;
  } else program = strcmp(slot, "killed") == 0 ? killed : "";
  int length = snprintf(text, room, "%s%s%s", message->word[3], program, message->word[5]);
  return length < 0 || (size_t)length >= room ? -1 : length;
}

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
  char text[TEXT_MAX];
  struct end end;
  struct entry message;
  uint64_t status;
  if (find_end(result, &end) < 0 || find_message(result->file, &end, &message) < 0 || parse_number(message.word[2], 255, &status) < 0) return -1;
  int length = fill(result, &message, text, sizeof text);
  return length < 0 || print(fd, text, (size_t)length) < 0 ? -1 : (int)status;
}

void print_exit_message(const struct result *result, int fd) {
  const struct end failed = {"exit", 0};
  struct entry message;
  if (!isatty(fd) || find_message(result->file, &failed, &message) < 0) return;
  (void)print(fd, message.word[3], strlen(message.word[3]));
}
