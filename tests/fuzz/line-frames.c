/* The frames that a client of a warm sandbox, or the runner of a captured run, sends to launch. */
#include "runner/freshness.h"
#include "runner/line.h"
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* Inputs of the sandbox: a caller that is always the same, and half a tree. */
static const struct launchfile *own_plan(void) {
  static const char BYTES[] = LAUNCH_FILE_MAGIC "\0key\0a\0key\0b\0key\0c\0key\0d\0key\0e\0key\0f\0key\0g\0key\0h\0key\0i\0"
                              "at\0/nonexistent\0missing\0engine\0unshare\0end";
  static struct launchfile own;
  const char *problem;
  if (!own.index && launchfile_check(BYTES, sizeof BYTES, &own, &problem) < 0) WRONG("set-up");
  return &own;
}

static void answer(struct line *line, enum line_event event) {
  int streams[3] = {-1, -1, -1};
  size_t size;
  if (event == LINE_SIGNAL) line_signal(line);
  if (event != LINE_RUN) return;
  (void)serves(own_plan(), &line->plan, &(struct looks_ahead){0});
  free(line_command(line, &size));
  if (line_streams(line, streams) == 0) line_accept(line);
  for (int i = 0; i < 3; i++)
    if (streams[i] >= 0) close(streams[i]);
}

static void release(struct line *line) {
  for (int i = 0; i < line->given_count; i++) close(line->given[i]);
  loop_close(&line->client);
  loop_close(&line->input);
  for (int i = 0; i < 2; i++)
    loop_close(&line->output[i]);
  free(line->body);
  free(line->kept);
  free(line->queued);
  if (line->plan.index) free((void *)(uintptr_t)line->plan.bytes); /* refused ones are still the body */
  free((void *)(uintptr_t)line->plan.index);
  free((void *)(uintptr_t)line->plan.range);
}

static uint64_t watch(void *line) {
  line_watch(line);
  return 1; /* without a wait */
}

static const struct part PARTS[] = {{watch, NULL}, {NULL, NULL}};

/* The first byte says whether the command has been taken already, as in a captured run. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int ends[2];
  if (size == 0) return 0;
  signal(SIGPIPE, SIG_IGN); /* as launch does */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) WRONG("set-up");
  static struct line line;
  line = (struct line)LINE_NONE;
  line.client.fd = ends[0];
  line.taken = data[0] & 1;
  if (send(ends[1], data + 1, size - 1, MSG_NOSIGNAL) < 0 && size > 1) WRONG("set-up");
  shutdown(ends[1], SHUT_WR);
  for (int turns = 0; turns < 1000 && line.client.fd >= 0; turns++) {
    if (loop_turn(PARTS, &line) < 0 || !(line.client.got | line.input.got)) break;
    enum line_event event = line_relay(&line);
    if (event == LINE_GONE) break;
    answer(&line, event);
  }
  close(ends[1]);
  release(&line);
  return 0;
}
