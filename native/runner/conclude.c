/* How a run ends, and where its one outcome goes: to the caller in this process, to a client, or to the status descriptor. */
#include "runner/run.h"

#include "lib/children.h"

#include <sys/wait.h>

static _Noreturn void report_to_caller(const struct run *run) {
  size_t size;
  const char *line = status_line(&run->outcome, &size);
  run->caller.call->ended(run->caller.call->context, line ? line : "");
  _exit(125);
}

_Noreturn void run_finish(struct run *run) {
  if (run_has_client(run)) run_finish_client(run);
  terminal_finish(&run->terminal);
  streams_restore(&run->stdio.before);
  sweeper_end(run->host.sweeper);
  observer_finish(&run->observer);
  run_do_deferred(run);
  line_close(&run->line); /* a socket without a sandbox must not be found */
  run_release(run);
  if (run->caller.call) report_to_caller(run);
  if (run->caller.keeper.fd >= 0 ? status_write(run->caller.keeper.fd, &run->outcome) < 0 : !run_has_client(run)) status_print(&run->outcome);
  _exit(ending_of(&run->outcome).exit_status);
}

static void take_usage_of_children(struct outcome *outcome) {
  struct children_usage usage = children_usage();
  outcome->cpu_us = (long long)usage.cpu_us, outcome->peak_bytes = (long long)usage.peak_bytes;
}

static void take_usage_of_group(struct outcome *outcome, int group) {
  struct cgroup_usage usage;
  cgroup_read_usage(group, &usage);
  /* Kills of the host's own OOM killer are counted too, but then our limit was never met. */
  outcome->oom_kills = usage.oom > 0 ? usage.oom_kill : usage.oom_kill < 0 ? -1 : 0;
  outcome->pids_refused = usage.pids_max;
  outcome->throttled_us = usage.throttled_usec;
  outcome->read_bytes = usage.read_bytes;
  outcome->write_bytes = usage.write_bytes;
  if (usage.pids_peak > 0) outcome->peak_pids = usage.pids_peak;
  if (usage.memory_peak > 0) outcome->peak_bytes = usage.memory_peak;
}

/* Only the kernel's counter tells a memory kill; a signal number does not. */
static int was_out_of_memory(const struct outcome *outcome) {
  return outcome->oom_kills > 0 && (outcome->wait_status == -1 || (WIFSIGNALED(outcome->wait_status) && WTERMSIG(outcome->wait_status) == SIGKILL));
}

void run_conclude(struct run *run) {
  struct outcome *outcome = &run->outcome;
  if (run->caller.has_status) return;
  stream_files_finish(&run->stdio.files);
  run_sweep(run);
  run_settle_layer(run);
  outcome->is_filtered = launchfile_has_filter(&run->file);
  net_helper_finish(&run->net);
  outcome->network = run->net.result;
  observer_finish(&run->observer);
  outcome->observed = run->observer.result;
  terminal_finish(&run->terminal);
  outcome->said = stream_files_said(&run->stdio.files);
  if (!outcome->ended_ns) {
    outcome->ended_ns = now_ns();
    take_usage_of_children(outcome);
  }
  if (run->host.cgroup >= 0) take_usage_of_group(outcome, run->host.cgroup);
  if (run->limits.has_watchdog && run->limits.watchdog.peak > outcome->peak_bytes) outcome->peak_bytes = run->limits.watchdog.peak;
  if (run->limits.has_watchdog && run->limits.watchdog.threads > outcome->peak_pids) outcome->peak_pids = run->limits.watchdog.threads;
  if (outcome->cause == CAUSE_EXIT && was_out_of_memory(outcome)) outcome->cause = CAUSE_MEMORY;
  if (outcome->cause == CAUSE_EXIT && outcome->wait_status == -1) run_record_failure(run, 0, "sandbox ended without a report", "");
}
