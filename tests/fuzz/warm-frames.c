/* The frames that a client of a warm sandbox, or the runner of a captured run, sends to launch. */
#include "runner/freshness.h"
#include "runner/run-protocol.h"
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the sandbox was built from: a caller that is always the same, and half a tree. */
static const struct launchfile *own_plan(void) {
  static const char BYTES[] = LAUNCH_FILE_MAGIC "\0key\0a\0key\0b\0key\0c\0key\0d\0key\0e\0key\0f\0key\0g\0key\0h\0key\0i\0"
                              "at\0/nonexistent\0missing\0engine\0unshare\0end";
  static struct launchfile own;
  const char *problem;
  if (!own.index && launchfile_check(BYTES, sizeof BYTES, &own, &problem) < 0) WRONG("set-up");
  return &own;
}

static void answer(struct warm *warm, enum warm_event event) {
  int streams[3] = {-1, -1, -1};
  size_t size;
  if (event == WARM_SIGNAL) warm_signal(warm);
  if (event != WARM_RUN) return;
  (void)serves(own_plan(), &warm->plan, &(struct looks_ahead){0});
  free(warm_command(warm, &size));
  if (warm_streams(warm, streams) == 0) warm_accept(warm);
  for (int i = 0; i < 3; i++)
    if (streams[i] >= 0) close(streams[i]);
}

static void release(struct warm *warm) {
  for (int i = 0; i < warm->given_count; i++) close(warm->given[i]);
  if (warm->client >= 0) close(warm->client);
  if (warm->input >= 0) close(warm->input);
  for (int i = 0; i < 2; i++)
    if (warm->output[i] >= 0) close(warm->output[i]);
  free(warm->body);
  free(warm->kept);
  free(warm->queued);
  if (warm->plan.index) free((void *)(uintptr_t)warm->plan.bytes); /* refused ones are still the body */
  free((void *)(uintptr_t)warm->plan.index);
}

/* The first byte says whether the command has been taken already, as in a captured run. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int ends[2];
  if (size == 0) return 0;
  signal(SIGPIPE, SIG_IGN); /* as launch does */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) WRONG("set-up");
  struct warm warm = WARM_NONE;
  warm.client = ends[0];
  warm.taken = data[0] & 1;
  if (send(ends[1], data + 1, size - 1, MSG_NOSIGNAL) < 0 && size > 1) WRONG("set-up");
  shutdown(ends[1], SHUT_WR);
  for (int turns = 0; turns < 1000 && warm.client >= 0; turns++) {
    struct pollfd watched[WARM_POLLS];
    warm_watch(&warm, watched);
    if (poll(watched, WARM_POLLS, 0) <= 0) break;
    enum warm_event event = warm_relay(&warm, watched);
    if (event == WARM_GONE) break;
    answer(&warm, event);
  }
  close(ends[1]);
  release(&warm);
  return 0;
}
