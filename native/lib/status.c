#include "lib/status.h"

#include "lib/files.h"
#include "lib/json-text.h"
#include "lib/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *reason_name(enum reason reason) {
  static const char *const NAMES[REASONS] = {
#define ROW(value, name) [value] = name,
      REASON_TABLE(ROW)
#undef ROW
  };
  return NAMES[reason];
}

/* ---- how it ended ---- */

/* Was it we who ended the command, so that what is not reaped was killed? At the memory limit that is so even before it runs. */
static int was_stopped(const struct outcome *outcome) {
  switch (outcome->cause) {
    case CAUSE_MEMORY: return 1;
    case CAUSE_EXIT:
    case CAUSE_SETUP:
    case CAUSE_EXEC:
    case CAUSE_LOST: return 0;
    default: return outcome->started_ns != 0;
  }
}

static int signal_of(const struct outcome *outcome) {
  if (outcome->wait_status == -1) return was_stopped(outcome) ? SIGKILL : 0;
  return WIFSIGNALED(outcome->wait_status) ? WTERMSIG(outcome->wait_status) : 0;
}

static int exit_code_of(const struct outcome *outcome) {
  return outcome->wait_status != -1 && WIFEXITED(outcome->wait_status) ? WEXITSTATUS(outcome->wait_status) : -1;
}

/* The command ended without our doing: the filter and the counters of the cgroup may know better. */
static enum reason own_reason(const struct outcome *outcome, const struct ending *ending) {
  if (ending->signal == SIGSYS && outcome->is_filtered) return REASON_SECCOMP;
  if (ending->signal == SIGKILL && outcome->oom_kills > 0) return REASON_MEMORY;
  if (ending->exit_code != 0 && outcome->pids_refused > 0) return REASON_PIDS;
  return ending->signal ? REASON_SIGNAL : REASON_EXIT;
}

static enum reason reason_of(const struct outcome *outcome, const struct ending *ending) {
  switch (outcome->cause) {
    case CAUSE_EXIT: return own_reason(outcome, ending);
    case CAUSE_DEADLINE: return REASON_TIMEOUT;
    case CAUSE_CPU_TIME: return REASON_CPU_TIME;
    case CAUSE_MEMORY: return REASON_MEMORY;
    case CAUSE_DISK: return REASON_DISK;
    case CAUSE_CANCELLED: return REASON_CANCELLED;
    case CAUSE_SETUP:
    case CAUSE_EXEC: return REASON_SETUP;
    case CAUSE_LOST: return REASON_LOST;
    case CAUSE_PROTECTED: return REASON_PROTECTED;
  }
  return REASON_SETUP;
}

#define NOT_EXECUTABLE "COMMAND_NOT_EXECUTABLE"
#define NOT_FOUND "COMMAND_NOT_FOUND"

static int is_interpreter(const struct outcome *outcome) { return strcmp(outcome->step, "interpreter") == 0; }

static const char *code_of(const struct outcome *outcome) {
  const struct exec_failure *failure;
  switch (outcome->cause) {
    case CAUSE_SETUP: return "SETUP_FAILED";
    case CAUSE_LOST: return "BACKEND_FAILED";
    case CAUSE_EXEC: failure = exec_failure(outcome->error, is_interpreter(outcome)); return failure ? failure->code : NOT_EXECUTABLE;
    default: return "";
  }
}

/* A command that handled the signal has the last word. */
static int exit_status_of(const struct ending *ending, int cancelled_by) {
  switch (ending->reason) {
    case REASON_TIMEOUT: return EXIT_TIMEOUT;
    case REASON_CANCELLED: return ending->exit_code >= 0 ? ending->exit_code : 128 + (cancelled_by ? cancelled_by : SIGTERM);
    case REASON_PROTECTED: return EXIT_PROTECTED;
    /* The wait status does not matter: the command may have caught SIGTERM, or have exited beyond the limit. */
    case REASON_MEMORY:
    case REASON_CPU_TIME:
    case REASON_DISK:
    case REASON_LOST: return EXIT_KILLED;
    case REASON_SETUP: return strcmp(ending->code, NOT_FOUND) == 0 ? EXIT_NOT_FOUND : strcmp(ending->code, NOT_EXECUTABLE) == 0 ? EXIT_NOT_EXECUTABLE : EXIT_SETUP;
    default: return ending->signal ? 128 + ending->signal : ending->exit_code >= 0 ? ending->exit_code : EXIT_KILLED;
  }
}

struct ending ending_of(const struct outcome *outcome) {
  struct ending ending = {.code = code_of(outcome), .exit_code = exit_code_of(outcome), .signal = signal_of(outcome)};
  ending.reason = reason_of(outcome, &ending);
  ending.exit_status = exit_status_of(&ending, outcome->cancelled_by);
  return ending;
}

const struct exec_failure *exec_failure(int error, int is_interpreter) {
  static const struct {
    int error;
    struct exec_failure failure;
  } ROWS[] = {
#define ROW(error, code, what, hint) {error, {code, what, hint}},
      EXEC_FAILURE_TABLE(ROW)
#undef ROW
  };
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
    if (ROWS[i].error == (is_interpreter && error == ENOENT ? EXEC_INTERPRETER : error)) return &ROWS[i].failure;
  return NULL;
}

/* ---- the line ---- */

static void put_key(FILE *out, const char *key, const char *text) {
  fprintf(out, ",\"%s\":", key);
  put_json(out, text);
}

static void put_number(FILE *out, const char *key, long long number) { fprintf(out, ",\"%s\":%lld", key, number); }

static void print_attempt(FILE *out, const struct guard_attempt *attempt) {
  fputs("{\"path\":", out);
  put_json(out, attempt->path);
  fputs(",\"aside\":", out);
  put_json(out, attempt->aside);
  fprintf(out, ",\"gone\":%s%s}", attempt->is_gone ? "true" : "false", attempt->is_unseen ? ",\"unseen\":true" : "");
}

/* All are counted, and the first are kept. */
struct paths {
  unsigned count, most;
  const char (*path)[256];
};

static void put_paths(FILE *out, const char *counter, const char *list, const struct paths *paths) {
  if (paths->count == 0) return;
  fprintf(out, ",\"%s\":%u,\"%s\":[", counter, paths->count, list);
  for (unsigned i = 0; i < paths->count && i < paths->most; i++) {
    if (i) fputc(',', out);
    put_json(out, paths->path[i]);
  }
  fputc(']', out);
}

void status_put_guard(FILE *out, const struct guard *guard) {
  if (guard->attempts) {
    fprintf(out, ",\"" STATUS_ATTEMPTS "\":%u,\"" STATUS_PROTECTED "\":[", guard->attempts);
    for (unsigned i = 0; i < guard->attempts && i < GUARD_ATTEMPTS_MAX; i++) {
      if (i) fputc(',', out);
      print_attempt(out, &guard->attempt[i]);
    }
    fputc(']', out);
  }
  put_paths(out, STATUS_SET_IDS, STATUS_SET_ID, &(struct paths){guard->set_ids, GUARD_SET_ID_MAX, guard->set_id});
  put_paths(out, STATUS_HIDDEN, STATUS_HIDDEN_PATHS, &(struct paths){guard->hidden, GUARD_HIDDEN_MAX, guard->hidden_path});
  if (guard->config_locked) fputs(",\"" STATUS_CONFIG_LOCKED "\":true", out);
  if (guard->unwatched) fputs(",\"" STATUS_UNWATCHED "\":true", out);
}

static void put_full(FILE *out, const char *const full[FULL_MAX]) {
  if (!full[0]) return;
  fputs(",\"" STATUS_FULL "\":[", out);
  for (int i = 0; i < FULL_MAX && full[i]; i++) {
    if (i) fputc(',', out);
    put_json(out, full[i]);
  }
  fputc(']', out);
}

static const char *verdict_name(uint32_t verdict) {
#define ROW(value, name) \
  if (verdict == value) return name;
  NET_VERDICT_TABLE(ROW)
#undef ROW
  return "not-listed";
}

static void print_host(FILE *out, const struct net_row *row) {
  fputs("{\"host\":", out);
  put_json(out, row->host);
  put_number(out, "port", row->port);
  put_key(out, "verdict", verdict_name(row->verdict));
  put_key(out, "rule", row->rule);
  put_number(out, "connections", row->connections);
  put_number(out, "bytesIn", (long long)row->bytes_in);
  put_number(out, "bytesOut", (long long)row->bytes_out);
  fputc('}', out);
}

void status_put_network(FILE *out, const struct net_report *report) {
  if (report->is_lost) fputs(",\"" STATUS_NETWORK_LOST "\":true", out);
  if (report->head.omitted) put_number(out, STATUS_NETWORK_OMITTED, report->head.omitted);
  fputs(",\"" STATUS_NETWORK "\":[", out);
  for (uint32_t i = 0; i < report->head.rows; i++) {
    if (i) fputc(',', out);
    print_host(out, &report->row[i]);
  }
  fputc(']', out);
}

static const char *observation_name(uint32_t what) {
#define ROW(observation, name) \
  if (what == observation) return name;
  OBSERVATION_TABLE(ROW)
#undef ROW
  return "hidden-read";
}

static void put_observed(FILE *out, const struct observed_report *report) {
  if (report->is_lost) fputs(",\"" STATUS_OBSERVER_LOST "\":true", out);
  if (report->head.omitted) put_number(out, STATUS_OBSERVED_OMITTED, report->head.omitted);
  if (report->head.unread) put_number(out, STATUS_OBSERVED_UNREAD, report->head.unread);
  fputs(",\"" STATUS_OBSERVED "\":[", out);
  for (uint32_t i = 0; i < report->head.rows; i++) {
    const struct observed_row *row = &report->row[i];
    fprintf(out, "%s{\"what\":\"%s\",\"path\":", i ? "," : "", observation_name(row->what));
    put_json(out, row->path);
    put_number(out, "count", row->count);
    put_number(out, "last", (long long)row->last);
    fputc('}', out);
  }
  fputc(']', out);
}

const char *status_line(const struct outcome *outcome, size_t *size) {
  FILE *out = text_begin();
  if (!out) return NULL;
  struct ending ending = ending_of(outcome);
  fprintf(out, "{\"" STATUS_REASON "\":\"%s\"", reason_name(ending.reason));
  put_key(out, STATUS_CODE, ending.code);
  put_number(out, STATUS_EXIT_CODE, ending.exit_code);
  put_number(out, STATUS_SIGNAL, ending.signal);
  put_number(out, STATUS_EXIT_STATUS, ending.exit_status);
  put_number(out, STATUS_CANCELLED_BY, outcome->cancelled_by);
  put_number(out, STATUS_ERRNO, outcome->error);
  put_key(out, STATUS_STEP, outcome->step);
  put_key(out, STATUS_PATH, outcome->path);
  put_key(out, STATUS_DETAIL, outcome->detail);
  put_number(out, STATUS_BEGUN_NS, (long long)outcome->begun_ns);
  put_number(out, STATUS_STARTED_NS, (long long)outcome->started_ns);
  put_number(out, STATUS_ENDED_NS, (long long)outcome->ended_ns);
  put_number(out, STATUS_CPU_US, outcome->cpu_us);
  put_number(out, STATUS_PEAK_MEMORY, outcome->peak_bytes);
  put_number(out, STATUS_PEAK_PIDS, outcome->peak_pids);
  put_number(out, STATUS_READ_BYTES, outcome->read_bytes);
  put_number(out, STATUS_WRITE_BYTES, outcome->write_bytes);
  put_number(out, STATUS_OOM_KILLS, outcome->oom_kills);
  put_number(out, STATUS_PIDS_REFUSED, outcome->pids_refused);
  put_number(out, STATUS_THROTTLED_US, outcome->throttled_us);
  put_number(out, STATUS_KILLED, outcome->killed);
  put_full(out, outcome->full);
  if (outcome->guard) status_put_guard(out, outcome->guard);
  if (outcome->network) status_put_network(out, outcome->network);
  if (outcome->observed) put_observed(out, outcome->observed);
  if (outcome->said && ending.exit_code != 0) put_key(out, STATUS_SAID, outcome->said);
  if (outcome->has_grown) fputs(",\"" STATUS_ZONES_GROWN "\":true", out);
  if (outcome->layer) put_key(out, STATUS_LAYER, outcome->layer);
  fputs("}\n", out);
  return text_end(size);
}

int status_write(int fd, const struct outcome *outcome) {
  size_t size = 0;
  const char *line = status_line(outcome, &size);
  return line ? write_all(fd, line, size) : -1;
}

void status_print(const struct outcome *outcome) {
  if (outcome->cause == CAUSE_EXIT) return;
  fprintf(stderr, "llm-do: %s", reason_name(ending_of(outcome).reason));
  if (outcome->step[0]) fprintf(stderr, ": %s", outcome->step);
  if (outcome->path[0]) fprintf(stderr, ": %s", outcome->path);
  if (outcome->error) fprintf(stderr, ": %s", strerror(outcome->error));
  if (outcome->detail[0]) fprintf(stderr, " (%s)", outcome->detail);
  for (unsigned i = 0; outcome->guard && i < outcome->guard->attempts && i < GUARD_ATTEMPTS_MAX; i++)
    fprintf(stderr, ": %s", outcome->guard->attempt[i].path);
  fputc('\n', stderr);
}
