#include "lib/status.h"
#include "unit.h"

#include <signal.h>

static enum cause cause_named(const char *name) {
  static const char *const NAMES[] = {[CAUSE_EXIT] = "exit", [CAUSE_DEADLINE] = "deadline", [CAUSE_CPU_TIME] = "cpu-time", [CAUSE_MEMORY] = "memory",
                                      [CAUSE_DISK] = "disk", [CAUSE_CANCELLED] = "cancelled", [CAUSE_SETUP] = "setup", [CAUSE_EXEC] = "exec",
                                      [CAUSE_LOST] = "lost", [CAUSE_PROTECTED] = "protected"};
  size_t cause = 0;
  while (cause < COUNT(NAMES) && strcmp(NAMES[cause], name) != 0) cause++;
  EXPECT(cause < COUNT(NAMES));
  return (enum cause)cause;
}

static int errno_named(const char *name) {
  static const struct {
    const char *name;
    int number;
  } ROWS[] = {{"-", 0}, {"ENOENT", ENOENT}, {"ENOTDIR", ENOTDIR}, {"EACCES", EACCES}, {"EIO", EIO}};
  for (size_t i = 0; i < COUNT(ROWS); i++)
    if (strcmp(ROWS[i].name, name) == 0) return ROWS[i].number;
  EXPECT(!"a known errno");
  return -1;
}

/* The part of a row before its arrow. */
static struct outcome outcome_of(const char *row) {
  char cause[16], wait[16], error[16], step[32], filter[8];
  int started;
  struct outcome outcome = {0};
  EXPECT_NUMBER(sscanf(row, "%15s %15s %15s %31s %d %lld %lld %7s", cause, wait, error, step, &started, &outcome.oom_kills, &outcome.pids_refused, filter), 8);
  char *by = strchr(cause, '@');
  if (by) *by = 0, outcome.cancelled_by = atoi(by + 1);
  outcome.cause = cause_named(cause);
  outcome.wait_status = (int)strtol(wait, NULL, 0);
  outcome.error = errno_named(error);
  outcome.started_ns = (uint64_t)started;
  outcome.is_filtered = strcmp(filter, "on") == 0;
  snprintf(outcome.step, sizeof outcome.step, "%s", step);
  return outcome;
}

UNIT("the end of a run is that of the table, which Node has, too") {
  char row[256], got[256];
  FILE *table = fopen("tests/ends.txt", "r");
  EXPECT(table != NULL);
  while (table && fgets(row, sizeof row, table)) {
    char *arrow = strstr(row, " -> ");
    if (row[0] == '#' || !arrow) continue;
    struct outcome outcome = outcome_of(row);
    struct ending ending = ending_of(&outcome);
    snprintf(got, sizeof got, "%s %d %d %d %s\n", reason_name(ending.reason), ending.exit_code, ending.signal, ending.exit_status, *ending.code ? ending.code : "-");
    EXPECT_TEXT(got, arrow + 4);
  }
  if (table) fclose(table);
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
              "{\"reason\":\"setup\",\"code\":\"COMMAND_NOT_FOUND\",\"exitCode\":-1,\"signal\":0,\"exitStatus\":127,\"cancelledBy\":0,\"errno\":2,\"step\":\"exec\",\"path\":\"/no\\\"such\","
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
