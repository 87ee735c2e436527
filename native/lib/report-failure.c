#include "lib/report-failure.h"

#include "lib/fd-message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int control_fd = -1;

void fail_through(int control) { control_fd = control; }

void copy_text(char *to, size_t room, const char *text) {
  size_t length = strnlen(text, room - 1);
  memcpy(to, text, length);
  to[length] = 0;
}

int report_send(int control, const struct report *report, const int *fds, int count) {
  return message_send(control, report, sizeof *report, fds, count);
}

void fail_with(int error, const char *step, const char *path) {
  struct report report = {.kind = REPORT_FAILED, .error = error, .at_ns = now_ns()};
  copy_text(report.step, sizeof report.step, step);
  copy_text(report.path, sizeof report.path, path);
  /* Nothing can be reported when this fails: launch sees the status 125 without a report and says so. */
  (void)!send(control_fd, &report, sizeof report, MSG_NOSIGNAL);
  _exit(125);
}

void fail(const char *step, const char *path) { fail_with(errno, step, path); }
