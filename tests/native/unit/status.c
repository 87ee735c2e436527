#include "lib/status.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What wait(2) reports: an exit code, or a signal. */
#define EXITED(code) ((code) << 8)
#define KILLED(number) (number)

UNIT("the exit status says what ended the run") {
  static const struct {
    struct outcome outcome;
    int want;
  } ROWS[] = {
      {{.cause = CAUSE_EXIT, .wait_status = EXITED(0)}, 0},
      {{.cause = CAUSE_EXIT, .wait_status = EXITED(255)}, 255},
      {{.cause = CAUSE_EXIT, .wait_status = KILLED(SIGSEGV)}, 128 + SIGSEGV},
      {{.cause = CAUSE_EXIT, .wait_status = KILLED(SIGTERM | 0x80)}, 128 + SIGTERM}, /* with a core */
      {{.cause = CAUSE_DEADLINE}, 124},
      {{.cause = CAUSE_CPU_TIME}, 137},
      {{.cause = CAUSE_MEMORY}, 137},
      {{.cause = CAUSE_CANCELLED, .cancelled_by = SIGINT}, 130},
      {{.cause = CAUSE_EXEC, .error = ENOENT}, 127},
      {{.cause = CAUSE_EXEC, .error = ENOENT, .step = "interpreter"}, 126},
      {{.cause = CAUSE_EXEC, .error = EACCES}, 126},
      {{.cause = CAUSE_SETUP, .error = ENOENT}, 125},
      {{.cause = CAUSE_LOST}, 137},
      {{.cause = CAUSE_PROTECTED}, 126},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) EXPECT_NUMBER(status_exit_code(&ROWS[i].outcome), ROWS[i].want);
}

static void expect_line(const struct outcome *outcome, const char *want) {
  size_t size = 0;
  const char *line = status_line(outcome, &size);
  EXPECT_TEXT(line, want);
  EXPECT(line && size == strlen(line));
}

UNIT("the line of a run has every number, -1 included, and ends with one line feed") {
  struct outcome outcome = {
      .cause = CAUSE_EXEC, .wait_status = -1, .error = 2, .step = "exec", .path = "/no\"such", .detail = "a\nb",
      .begun_ns = 1, .started_ns = 9223372036854775807ull, .ended_ns = 3, .cpu_us = 4, .peak_bytes = 5, .peak_pids = 6,
      .oom_kills = -1, .pids_refused = -1, .throttled_us = -1, .read_bytes = -1, .write_bytes = 0, .killed = 7,
  };
  expect_line(&outcome,
              "{\"cause\":\"exec\",\"waitStatus\":-1,\"cancelledBy\":0,\"errno\":2,\"step\":\"exec\",\"path\":\"/no\\\"such\","
              "\"detail\":\"a\\u000ab\",\"begunNs\":1,\"startedNs\":9223372036854775807,\"endedNs\":3,\"cpuUs\":4,\"peakMemory\":5,"
              "\"peakPids\":6,\"readBytes\":-1,\"writeBytes\":0,\"oomKills\":-1,\"pidsRefused\":-1,\"throttledUs\":-1,\"killed\":7}\n");
}

static void expect_guard(const struct guard *guard, const char *want) {
  char *got;
  size_t size;
  FILE *out = open_memstream(&got, &size);
  status_put_guard(out, guard);
  fclose(out);
  EXPECT_TEXT(got, want);
  free(got);
}

UNIT("a guard that saw nothing adds nothing to the line") { expect_guard(&(struct guard){.attempts = 0}, ""); }

UNIT("attempts are named with where they were moved; more than are kept are counted") {
  static struct guard guard;
  guard = (struct guard){.attempts = 1, .config_locked = 1};
  strcpy(guard.attempt[0].path, "/z/.git");
  guard.attempt[0].is_gone = 1;
  expect_guard(&guard, ",\"attempts\":1,\"protected\":[{\"path\":\"/z/.git\",\"aside\":\"\",\"gone\":true}],\"configLocked\":true");
  guard = (struct guard){.set_ids = GUARD_SET_ID_MAX + 1};
  expect_guard(&guard, ",\"setIds\":9,\"setId\":[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]");
}

UNIT("a guard without notices of the kernel says so") { expect_guard(&(struct guard){.unwatched = 1}, ",\"unwatched\":true"); }

UNIT("what an observer saw is named, and what it left out is counted") {
  static struct observed_report report = {.head = {.rows = 2, .omitted = 3, .unread = 1}};
  report.row[0] = (struct observed_row){.what = OBSERVED_READ_ONLY, .count = 2, .last = 7, .path = "/a\"b"};
  report.row[1] = (struct observed_row){.what = 99, .count = 1, .last = 1, .path = ""};
  const struct outcome outcome = {.cause = CAUSE_EXIT, .observed = &report};
  size_t size = 0;
  const char *line = status_line(&outcome, &size);
  EXPECT(line && strstr(line, ",\"observedOmitted\":3,\"observedUnread\":1,\"observed\":[{\"what\":\"read-only\",\"path\":\"/a\\\"b\",\"count\":2,\"last\":7},"
                              "{\"what\":\"hidden-read\",\"path\":\"\",\"count\":1,\"last\":1}]"));
}
