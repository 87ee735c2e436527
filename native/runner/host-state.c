/* A run makes a record and a cgroup on the host and removes them at its end. It guards the files that it finds there (lib/guard.h). */
#include "runner/run.h"

#include "lib/covers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysinfo.h>

/* For the processes of each dead run to end: what takes longer waits for the next run, which is not to be late for it. */
#define JANITOR_MS 100

void run_open_record(struct run *run) {
  struct entry entry;
  if (!launchfile_find(&run->file, V_RUNS, &entry)) return;
  run->host.records = records_open(entry.word[0]);
  if (run->host.records < 0) run_refuse(run, "launch: runs directory", entry.word[0]);
  records_prune(run->host.records, JANITOR_MS);
  run->host.record = record_create(run->host.records, run->id);
  if (run->host.record < 0) run_refuse(run, "launch: record of the run", run->id);
}

int run_put_record(const struct run *run) {
  struct entry profile, caller, cgroup;
  char path[PATH_MAX + sizeof run->host.cgroup_name + 1] = "";
  if (run->host.record < 0) return 0;
  if (run->host.cgroup_name[0] && launchfile_find(&run->file, V_CGROUP, &cgroup))
    snprintf(path, sizeof path, "%s/%s", cgroup.word[0], run->host.cgroup_name);
  struct run_record content = {
    .id = run->id,
    .profile = launchfile_find(&run->file, V_PROFILE, &profile) ? profile.word[0] : "",
    .caller = launchfile_find(&run->file, V_CALLER, &caller) ? caller.word[0] : "",
    .cgroup = path,
    .command = run->command.words,
  };
  return record_write(run->host.record, &content);
}

void run_write_record(struct run *run) {
  if (run_put_record(run) < 0) run_refuse(run, "launch: record of the run", run->id);
}

/* A kernel that counts no swap needs no limit of it while there is none. */
static int is_vain(const char *file) {
  struct sysinfo host;
  return strcmp(file, "memory.swap.max") == 0 && sysinfo(&host) == 0 && host.totalswap == 0;
}

/* The records of one verb. 0, or -1 with errno and the file that could not be written. */
static int set_group_limits(const struct run *run, enum verb verb, const char **file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(&run->file, verb, &position, &entry)) {
    *file = entry.word[0];
    int done = cgroup_set(run->host.cgroup, entry.word[0], entry.word[1]);
    if (done == CGROUP_ABSENT && is_vain(entry.word[0])) continue;
    if (done == CGROUP_ABSENT) errno = ENOENT; /* the plan promised what this kernel has not */
    if (done != 0) return -1;
  }
  return 0;
}

void run_name_group(struct run *run) {
  struct entry entry;
  if (launchfile_find(&run->file, V_CGROUP, &entry))
    snprintf(run->host.cgroup_name, sizeof run->host.cgroup_name, "%s%s", CGROUP_PREFIX, run->id);
}

void run_make_group(struct run *run) {
  struct entry entry;
  if (!launchfile_find(&run->file, V_CGROUP, &entry)) return;
  run->host.cgroup_parent = cgroup_open(entry.word[0]);
  if (run->host.cgroup_parent < 0) run_refuse(run, "launch: open cgroup", entry.word[0]);
  run->host.cgroup = cgroup_create(run->host.cgroup_parent, run->host.cgroup_name);
  if (run->host.cgroup < 0) run_refuse(run, "launch: make cgroup", entry.word[0]);
  const char *file = "";
  if (set_group_limits(run, V_SET, &file) < 0) run_refuse(run, "launch: set limit", file);
}

int run_narrow_group(struct run *run) {
  const char *file = "";
  if (run->host.cgroup < 0 || set_group_limits(run, V_NARROW, &file) == 0) return 0;
  return run_record_failure(run, errno, "launch: set limit", file), -1;
}

/* A stager that is gone has said why. */
static int tell_covers(struct run *run) { return covers_send(run->engine.control.fd, &run->guard) == 0 || errno == EPIPE || errno == ECONNRESET; }

int run_guard(struct run *run) {
  if (!covers_are_sent(&run->file) || launchfile_has_slots(&run->file)) return 0;
  int is_ready = guard_prepare(&run->guard, &run->file) == 0;
  run->guard.on_hidden = run_hide, run->guard.of_hidden = run;
  if (is_ready && (!run->warm.is_on || run->warm.is_blank)) guard_watch(&run->guard, now_ns());
  if (is_ready && tell_covers(run)) return 0;
  return run_record_failure(run, errno, is_ready ? "launch: send covers" : "launch: protect", run->guard.failed), -1;
}

static int fail_zones(struct run *run) { return run_record_failure(run, errno, "launch: size of zones", run->limits.zones.failed), -1; }

int run_measure_zones(struct run *run) { return zone_size_begin(&run->limits.zones, &run->file) < 0 ? fail_zones(run) : 0; }

void run_settle_zones(struct run *run) {
  if (run->outcome.cause != CAUSE_EXIT) return;
  int over = zone_size_ends_over(&run->limits.zones);
  if (over < 0) fail_zones(run);
  if (over > 0) run->outcome.cause = CAUSE_DISK, run->outcome.has_grown = 1;
}

int run_start_sweeper(struct run *run) {
  if (run->engine.is_gone || run->host.sweeper) return 0;
  run->host.sweeper = sweeper_start(&(struct sweeper){&run->guard, run->id, run->engine.pid, run->host.cgroup, !launchfile_has_namespaces(&run->file)});
  if (run->host.sweeper >= 0) return 0;
  run->host.sweeper = 0;
  return run_record_failure(run, errno, "launch: sweeper", ""), -1;
}

void run_sweep(struct run *run) {
  struct outcome *outcome = &run->outcome;
  if (run->host.is_swept || !outcome->started_ns) return; /* nothing of the command's has run */
  run->host.is_swept = 1;
  guard_on_end(&run->guard);
  run_settle_zones(run);
  if (guard_sweep(&run->guard, run->id) > 0 && outcome->cause != CAUSE_SETUP) outcome->cause = CAUSE_PROTECTED;
  outcome->guard = &run->guard;
  sweeper_dismiss(run->host.sweeper); /* what is made from now on is not the command's */
}

void run_release(struct run *run) {
  run_release_layer(run);
  if (run->net.has_grants) record_unlisten(run->host.records, run->id);
  int is_gone = run->host.cgroup < 0 || cgroup_end(run->host.cgroup_parent, run->host.cgroup_name, run->host.cgroup) == 0;
  /* The record keeps what could not be removed, for `llm-do prune`. */
  if (run->host.record >= 0 && is_gone) record_remove(run->host.records, run->id, run->host.record);
}
