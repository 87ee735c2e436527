#include "lib/status.h"

#include "lib/json-text.h"
#include "lib/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const NAMES[CAUSES] = {
#define ROW(cause, name) [cause] = name,
    CAUSE_TABLE(ROW)
#undef ROW
};

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

void status_put_guard(FILE *out, const struct guard *guard) {
  if (guard->attempts) {
    fprintf(out, ",\"" STATUS_ATTEMPTS "\":%u,\"" STATUS_PROTECTED "\":[", guard->attempts);
    for (unsigned i = 0; i < guard->attempts && i < GUARD_ATTEMPTS_MAX; i++) {
      if (i) fputc(',', out);
      print_attempt(out, &guard->attempt[i]);
    }
    fputc(']', out);
  }
  if (guard->set_ids) {
    fprintf(out, ",\"" STATUS_SET_IDS "\":%u,\"" STATUS_SET_ID "\":[", guard->set_ids);
    for (unsigned i = 0; i < guard->set_ids && i < GUARD_SET_ID_MAX; i++) {
      if (i) fputc(',', out);
      put_json(out, guard->set_id[i]);
    }
    fputc(']', out);
  }
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
  fprintf(out, "{\"" STATUS_CAUSE "\":\"%s\"", NAMES[outcome->cause]);
  put_number(out, STATUS_WAIT_STATUS, outcome->wait_status);
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
  if (outcome->layer) put_key(out, STATUS_LAYER, outcome->layer);
  fputs("}\n", out);
  return text_end(size);
}

int status_write(int fd, const struct outcome *outcome) {
  size_t size = 0, sent = 0;
  const char *line = status_line(outcome, &size);
  if (!line) return -1;
  while (sent < size) {
    ssize_t got = write(fd, line + sent, size - sent);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    sent += (size_t)got;
  }
  return sent == size ? 0 : -1;
}

static int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int status_exit_code(const struct outcome *outcome) {
  switch (outcome->cause) {
    case CAUSE_EXIT: return exit_code_of(outcome->wait_status);
    case CAUSE_DEADLINE: return EXIT_TIMEOUT;
    case CAUSE_CPU_TIME:
    case CAUSE_DISK:
    case CAUSE_MEMORY: return EXIT_KILLED;
    case CAUSE_CANCELLED: return EXIT_CANCELLED;
    case CAUSE_EXEC: return outcome->error == ENOENT && strcmp(outcome->step, "interpreter") != 0 ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    case CAUSE_PROTECTED: return EXIT_PROTECTED;
    case CAUSE_SETUP: return EXIT_SETUP;
    case CAUSE_LOST: return EXIT_KILLED;
    case CAUSES: break;
  }
  return EXIT_SETUP;
}

void status_print(const struct outcome *outcome) {
  if (outcome->cause == CAUSE_EXIT) return;
  fprintf(stderr, "llm-do: %s", NAMES[outcome->cause]);
  if (outcome->step[0]) fprintf(stderr, ": %s", outcome->step);
  if (outcome->path[0]) fprintf(stderr, ": %s", outcome->path);
  if (outcome->error) fprintf(stderr, ": %s", strerror(outcome->error));
  if (outcome->detail[0]) fprintf(stderr, " (%s)", outcome->detail);
  for (unsigned i = 0; outcome->guard && i < outcome->guard->attempts && i < GUARD_ATTEMPTS_MAX; i++)
    fprintf(stderr, ": %s", outcome->guard->attempt[i].path);
  fputc('\n', stderr);
}
