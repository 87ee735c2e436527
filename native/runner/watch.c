/* From the start of the stager until nothing is left: what comes first, and what follows from it. */
#include "runner/run.h"
#include "runner/stream-check.h"

#include "lib/children.h"
#include "lib/passed-signals.h"

#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* From SIGTERM to SIGKILL. The contract: the tree is gone 200 ms after a deadline, 500 ms after a signal to the runner. */
#define GRACE_DEADLINE_MS 100
#define GRACE_CANCEL_MS 250
/* The watchdog rung promises to look at least every 50 ms. */
#define TICK_MS 25
/* For the reader of a terminal, after a run that was stopped. */
#define REST_MS 100
/* For the rest of what a command has printed to a file, after a run that was stopped: at most a pipe is left. */
#define RELAY_MS 1000

/* A relay ends with the last writer of its pipe, unless the file makes it wait. Nothing but a stop makes that too long. */
static int is_carrying(const struct run *run, pid_t child) {
  int is_late = run->stop.has_begun && run->engine.is_gone && now_ns() > run->stop.begun_ns + RELAY_MS * MS;
  return !is_late && stream_files_is_relay(&run->stdio.files, child);
}

static void kill_child(pid_t child, const void *context) {
  const struct run *run = context;
  if (child != run->host.sweeper && child != run->net.pid && child != run->observer.pid && !is_carrying(run, child)) kill(child, SIGKILL);
}

static void send_request(struct run *run, int signal, int everyone) {
  struct request request = {.signal = signal, .everyone = everyone};
  (void)!send(run->engine.control.fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Without a pid namespace nothing ends with init: it is asked to kill first, and is killed itself where it has not ended by then. */
static int ask_to_kill(struct run *run) {
  if (launchfile_has_namespaces(&run->file) || !run->outcome.started_ns || run->engine.is_gone || run->stop.has_asked) return 0;
  send_request(run, SIGKILL, 1);
  return run->stop.has_asked = 1;
}

void run_kill(struct run *run) {
  int asks = ask_to_kill(run);
  if (run->host.cgroup >= 0) cgroup_kill(run->host.cgroup);
  if (!run->engine.is_gone && !asks) kill(run->engine.pid, SIGKILL);
  /* As their subreaper we get what the engine leaves behind: a child of bwrap that has not yet tied itself to its parent, and an init
   * that still waits. PID 1 takes the whole sandbox with it. */
  if (!asks) (void)children_each(kill_child, run);
  run->stop.kill_ns = now_ns() + 100 * MS; /* again, should something have been born meanwhile */
}

/* A failure that a part has noted ends the run. */
static void must(struct run *run, int done) {
  if (done < 0) run_kill(run);
}

/* The command has ended, or never ran, and we have been told: no stop is a reason for that any more. */
static int is_decided(const struct run *run) { return run->outcome.ended_ns || run->outcome.step[0]; }

/* Neither over nor being stopped. */
static int is_running(const struct run *run) { return run->outcome.started_ns && !run->outcome.ended_ns && !run->stop.has_begun; }

static void read_pending_reports(struct run *run);

/* On a busy machine what a report says is older than the moment in which we find that the run must be stopped. */
static void begin_stop(struct run *run, enum cause cause) {
  read_pending_reports(run);
  if (run->stop.has_begun) return; /* a report was the reason */
  run->stop.begun_ns = now_ns();
  run->stop.has_begun = 1;
  if (!is_decided(run)) run->outcome.cause = cause;
}

/* A report from before the stop, which came after it. What was made at a protected path counts however the command ended. */
static int was_overtaken(const struct run *run, const struct report *report) {
  return run->stop.has_begun && report->at_ns < run->stop.begun_ns && run->outcome.cause != CAUSE_PROTECTED;
}

void run_stop(struct run *run, enum cause cause, unsigned grace_ms) {
  if (run->stop.has_begun && grace_ms) return; /* the same Ctrl-C may reach us twice, from the terminal and from the runner */
  if (!run->stop.has_begun) begin_stop(run, cause);
  if (!run->outcome.started_ns || grace_ms == 0) return run_kill(run);
  run->stop.kill_ns = now_ns() + grace_ms * MS;
  send_request(run, cause == CAUSE_CANCELLED && run->outcome.cancelled_by ? run->outcome.cancelled_by : SIGTERM, 1);
}

static void fail_size(struct run *run) {
  run_record_failure(run, errno, "launch: size of zones", run->limits.zones.failed);
  run_kill(run);
}

static void begin_limits(struct run *run) {
  if (run->limits.deadline_ns) run->limits.deadline_ns += run->outcome.started_ns;
  int is_monitor = run->engine.pid == run->engine.stager && launchfile_has_namespaces(&run->file);
  if (zone_size_watch(&run->limits.zones, run->engine.pid, run->host.cgroup, is_monitor, now_ns()) < 0) fail_size(run);
  if ((!run->limits.has_watchdog && !run->limits.cpu_us) || run->engine.is_gone) return;
  int ready = watchdog_init(&run->limits.watchdog, run->engine.pid, run->host.cgroup, (long long)run->limits.memory);
  for (int i = 0; ready == 0 && i < run->limits.scratch_count; i++) ready = watchdog_add_scratch(&run->limits.watchdog, run->limits.scratch[i]);
  run->limits.watchdog.is_monitor = is_monitor;
  if (ready == 0) return;
  run_record_failure(run, errno, "launch: watchdog", "");
  run_kill(run);
}

/* From now on the end of this process is the end of the run. Once it is reaped, another process may get its pid. */
static void on_init(struct run *run, pid_t init) {
  siginfo_t ended;
  run->engine.pid = init;
  run->engine.is_gone = waitid(P_PID, (id_t)init, &ended, WEXITED | WNOHANG | WNOWAIT) < 0;
}

static void on_staged(struct run *run, const struct report *report, const int *fds, int count) {
  memcpy(run->limits.scratch, fds, sizeof *fds * (size_t)count);
  run->limits.scratch_count = count;
  if (report->pid) on_init(run, report->pid);
  if (!run->warm.is_on) must(run, run_start_sweeper(run)); /* that of a warm run comes with its command */
}

/* One that comes before the command waits for it: the stager, which is there until then, takes no requests. */
static void pass_on(struct run *run, int signal) {
  if (!run->outcome.started_ns) note_early_signal(&run->stop, signal);
  else if (!run->stop.has_begun) send_request(run, signal, 0);
}

static void pass_early_signals(struct run *run) {
  for (int signal = 1; signal < _NSIG; signal++)
    if (run->stop.early_signals >> (signal - 1) & 1) pass_on(run, signal);
  run->stop.early_signals = 0;
}

static void begin_command(struct run *run, uint64_t at_ns) {
  run->outcome.started_ns = at_ns;
  guard_on_start(&run->guard, at_ns);
  pass_early_signals(run);
  begin_limits(run);
  must(run, run_limit_layer(run));
}

static void on_started(struct run *run, const struct report *report, int master) {
  if (master >= 0) terminal_connect(&run->terminal, master, 0, 1);
  begin_command(run, report->at_ns);
}

static void begin_late(struct run *run) {
  int begun = run_begin_command(run);
  if (begun > 0) begin_command(run, now_ns()), must(run, run_start_sweeper(run));
  else if (begun < 0) run_kill(run);
  else run_stop(run, CAUSE_CANCELLED, 0);
  run_leave_pool(run);
}

/* In a blank sandbox it waits until the directories are there. */
static void on_command(struct run *run) {
  if (run->stop.has_begun) return line_refuse(&run->line);
  if (run_take_command(run) < 0) return run_kill(run), run_leave_pool(run);
  run->warm.has_command = 1;
  if (!run->warm.is_blank || run->warm.is_mounted) begin_late(run);
}

static void on_mounted(struct run *run) {
  run->warm.is_mounted = 1;
  if (run->warm.has_command && !run->stop.has_begun) begin_late(run);
}

static void on_places(struct run *run) {
  if (!run->stop.has_begun && run_fill(run) < 0) line_refuse(&run->line), run_kill(run);
}

/* It was told to start, and has not. Where it was stopped, that is the reason. */
static void on_not_started(struct run *run, const struct report *report) {
  run->outcome.started_ns = 0;
  if (run->stop.has_begun) return;
  run_record_failure(run, report->error, report->step[0] ? report->step : "launch: no command was begun", report->path);
}

/* The bits of a report are places among the tmpfs entries. */
static void note_full(struct run *run, uint32_t full) {
  struct entry entry;
  size_t position = 0;
  for (int count = 0; full && launchfile_next_of(&run->file, V_TMPFS, &position, &entry);) {
    if (full & 1) run->outcome.full[count++] = entry.word[0];
    full >>= 1;
  }
}

static void on_ended(struct run *run, const struct report *report) {
  if (was_overtaken(run, report)) run_forget_failure(run);
  note_full(run, report->full);
  if (report->started_ns) run->outcome.started_ns = report->started_ns;
  run->outcome.wait_status = report->wait_status;
  run->outcome.ended_ns = report->at_ns;
  run->outcome.killed = report->killed;
  run->outcome.cpu_us = (long long)report->cpu_us;
  run->outcome.peak_bytes = (long long)report->peak_bytes;
}

/* Nothing that the command does waits longer than it takes to end the run. */
static void on_observed(struct run *run, int listener) {
  if (observer_start(&run->observer, listener, &run->file) == 0) return;
  run_record_failure(run, errno, "launch: observer", "");
  run_kill(run);
}

static void on_no_exec(struct run *run, const struct report *report) {
  if (run->stop.has_begun && !was_overtaken(run, report)) return;
  run_forget_failure(run);
  run_record_failure_as(run, CAUSE_EXEC, report->error, report->step, report->path);
}

static void on_report(struct run *run, const struct report *report, const int *fds, int count) {
  if (report->has_names && count > 0 && run->net.names.fd < 0) run->net.names.fd = fds[--count];
  switch (report->kind) {
    case REPORT_STAGED: on_staged(run, report, fds, count); break;
    case REPORT_STARTED: on_started(run, report, count ? fds[0] : -1); break;
    case REPORT_ENDED: on_ended(run, report); break;
    case REPORT_READY: must(run, run_on_ready(run, fds, count)); break;
    case REPORT_OBSERVED: on_observed(run, count ? fds[0] : -1); break;
    case REPORT_MOUNTED: on_mounted(run); break;
    case REPORT_EXECUTED: must(run, run_open_exec_in(run)); break;
    case REPORT_NOT_STARTED: on_not_started(run, report); break;
    case REPORT_NO_EXEC: on_no_exec(run, report); break;
    default: run_record_failure_as(run, CAUSE_SETUP, report->error, report->step, report->path); /* of the command's process, before its exec */
  }
}

/* Returns 0 when no process is left that could report. */
static int read_report(struct run *run) {
  struct report report;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(run->engine.control.fd, &report, sizeof report, MSG_DONTWAIT, fds, &count);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (got != sizeof report) return 0;
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  on_report(run, &report, fds, count);
  return 1;
}

static void read_errors(struct run *run) {
  size_t have = strlen(run->outcome.detail);
  char rest[256];
  ssize_t got = have + 1 < sizeof run->outcome.detail
                    ? read(run->engine.errors.fd, run->outcome.detail + have, sizeof run->outcome.detail - have - 1)
                    : read(run->engine.errors.fd, rest, sizeof rest);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  loop_close(&run->engine.errors);
}

static void cancel(struct run *run, int signal) {
  if (!run->stop.has_begun && !is_decided(run)) run->outcome.cancelled_by = signal;
  run_stop(run, CAUSE_CANCELLED, GRACE_CANCEL_MS);
}

static void on_signal(struct run *run, int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGWINCH) return terminal_resize(&run->terminal);
  if (is_passed_signal(signal)) return pass_on(run, signal);
  cancel(run, signal);
}

static void read_signals(struct run *run) {
  struct signalfd_siginfo info;
  while (read(run->caller.signals.fd, &info, sizeof info) == sizeof info) on_signal(run, (int)info.ssi_signo);
}

/* As if it had sent SIGTERM. */
static void on_parent_end(struct run *run) {
  loop_close(&run->caller.parent);
  on_signal(run, SIGTERM);
}

static void read_keeper(struct run *run) {
  char nothing[64];
  ssize_t got = read(run->caller.keeper.fd, nothing, sizeof nothing);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  run->caller.is_kept = 0;
  run_stop(run, CAUSE_CANCELLED, 0); /* no command has started that SIGTERM could end */
}

static void relay_line(void *of) {
  struct run *run = of;
  if (run->caller.call) return;
  switch (run_relay(run)) {
    case LINE_PLACES: return on_places(run);
    case LINE_RUN: return on_command(run);
    case LINE_SIGNAL: return on_signal(run, line_signal(&run->line));
    case LINE_STOP: return cancel(run, line_signal(&run->line));
    case LINE_GONE: return run->caller.has_status ? (void)0 : run_stop(run, CAUSE_CANCELLED, 0);
    case LINE_PLAN: /* only before a command, where run_await_plan takes it */
    case LINE_NOTHING: return;
  }
}

/* Once init has reported the end nothing is left inside but itself: the client need not wait until its walls are taken down. */
static void send_status_early(void *of) {
  struct run *run = of;
  if (!run_has_client(run) || run->caller.has_status || !run->outcome.ended_ns || !line_is_drained(&run->line) || terminal_is_pending(&run->terminal) || stream_files_are_busy(&run->stdio.files)) return;
  run_sweep(run); /* before the client's next step, which may be to make what was protected */
  run_conclude(run);
  run_send_status(run);
}

/* Its last report may not have been read yet. */
static int has_ended(const struct run *run) {
  siginfo_t ended = {0};
  return run->engine.is_gone || (waitid(P_PID, (id_t)run->engine.pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == run->engine.pid);
}

static void look_at_memory(struct run *run) {
  int over = watchdog_sample(&run->limits.watchdog);
  if (over == WATCHDOG_UNDER || (over < 0 && has_ended(run))) return; /* a tree that is going away */
  int error = errno;
  run_stop(run, over == WATCHDOG_OVER ? CAUSE_MEMORY : CAUSE_LOST, 0);
  if (over < 0 && run->outcome.cause == CAUSE_LOST) run_record_failure(run, error, "launch: watchdog", ""); /* without a watchdog the limit does not hold */
}

/* The command has ended, and its last output waits for a reader: as long as the run may take. */
static int awaits_reader(const struct run *run) { return run->outcome.started_ns && run->engine.is_gone && !run->stop.has_begun && stream_files_are_busy(&run->stdio.files); }

/* Each moment fills the disk. */
static void look_at_zones(struct run *run, uint64_t now) {
  int over = zone_size_is_over(&run->limits.zones, now);
  if (over < 0) return fail_size(run);
  if (over > 0) run_stop(run, CAUSE_DISK, 0), run->outcome.has_grown = run->outcome.cause == CAUSE_DISK;
}

static void read_pending_reports(struct run *run) {
  for (struct pollfd pending = {run->engine.control.fd, POLLIN, 0}; run->engine.control.fd >= 0 && poll(&pending, 1, 0) > 0;)
    if (!read_report(run)) loop_close(&run->engine.control);
}

/* A command that runs finds that nothing can be reached, and its result says so; one that comes to a warm sandbox goes another way. */
static void on_net_helper_end(struct run *run) {
  run->net.pid = 0;
  if (!run->warm.is_on || run->outcome.started_ns || run->stop.has_begun) return;
  run_record_failure(run, 0, "net helper ended", "");
  run_kill(run);
}

/* The command's output is not where its caller wants it, so nothing that it reports is worth anything. */
static void on_carried(struct run *run, int stream, int error) {
  if (!error || run->stop.has_begun) return;
  run_record_failure(run, error, "launch: carry stream", stream_name(stream));
  run_kill(run);
}

/* Returns 1 once the last child has been reaped. */
static int all_gone(struct run *run) {
  for (;;) {
    int status, error;
    if (run->engine.is_gone) net_helper_finish(&run->net);
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == ECHILD) return 1;
    if (pid <= 0) return 0;
    if (pid == run->net.pid) on_net_helper_end(run);
    int carried = stream_files_on_end(&run->stdio.files, pid, status, &error);
    if (carried >= 0) on_carried(run, carried, error);
    if (pid == run->engine.pid) run->engine.is_gone = 1; /* for what is read now; a report may name another one */
    read_pending_reports(run); /* on a busy machine the whole run is over before we look for the first time */
    if (pid == run->engine.stager && pid != run->engine.pid) must(run, run_narrow_group(run)); /* it has named init before it went */
    if (pid != run->engine.pid) continue;
    if (!launchfile_has_namespaces(&run->file)) run_kill(run); /* what it has left is ours */
    if (run->outcome.started_ns || run->stop.has_begun) continue;
    run_record_failure(run, 0, "engine ended before init", WIFSIGNALED(status) ? "by a signal" : "");
    run_kill(run); /* without it the sandbox would never end */
  }
}

/* The machine may have kept us waiting for longer than the reader: then it is not busy any more. */
static void give_up_reader(struct run *run) {
  (void)all_gone(run);
  if (!awaits_reader(run)) return;
  run_stop(run, CAUSE_DEADLINE, 0);
  run->outcome.cause = CAUSE_DEADLINE;
}

static void look_at_limits(void *of) {
  struct run *run = of;
  uint64_t now = now_ns();
  if (run->stop.kill_ns && now >= run->stop.kill_ns) run_kill(run);
  if (run->warm.deferred_ns && now >= run->warm.deferred_ns) run_do_deferred(run);
  if (awaits_reader(run) && run->limits.deadline_ns && now >= run->limits.deadline_ns) give_up_reader(run);
  if (!is_running(run)) return;
  if (run->limits.deadline_ns && now >= run->limits.deadline_ns) return run_stop(run, CAUSE_DEADLINE, GRACE_DEADLINE_MS);
  if (run->limits.has_watchdog && watchdog_is_due(&run->limits.watchdog)) look_at_memory(run);
  uint64_t size = layer_size_due(&run->layer.size);
  if (size && now >= size && layer_size_is_over(&run->layer.size, now, 0)) return run_stop(run, CAUSE_DISK, 0); /* each moment fills the disk */
  uint64_t zones = zone_size_due(&run->limits.zones);
  if (zones && now >= zones) look_at_zones(run, now);
  if (run->limits.cpu_us && watchdog_cpu_usec(&run->limits.watchdog) >= (long long)run->limits.cpu_us)
    run_stop(run, CAUSE_CPU_TIME, GRACE_DEADLINE_MS);
}

static uint64_t sooner(uint64_t a, uint64_t b) { return a && (!b || a < b) ? a : b; }

static uint64_t limits_due(void *of) {
  const struct run *run = of;
  uint64_t due = sooner(run->stop.kill_ns, run->warm.deferred_ns);
  if (awaits_reader(run)) due = sooner(due, run->limits.deadline_ns);
  if (!is_running(run)) return due;
  if (run->limits.has_watchdog || run->limits.cpu_us) due = sooner(due, now_ns() + TICK_MS * MS);
  return sooner(sooner(due, zone_size_due(&run->limits.zones)), sooner(run->limits.deadline_ns, layer_size_due(&run->layer.size)));
}

static uint64_t watch_terminal(void *of) {
  struct run *run = of;
  return terminal_watch(&run->terminal), 0;
}

static void relay_terminal(void *of) {
  struct run *run = of;
  terminal_relay(&run->terminal);
}

static uint64_t watch_own(void *of) {
  struct run *run = of;
  struct source *own[] = {&run->engine.control, &run->engine.errors, &run->caller.signals, &run->caller.parent, &run->net.names, &run->exec_in};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) (void)loop_watch(own[i], EPOLLIN);
  if (run->caller.is_kept) (void)loop_watch(&run->caller.keeper, EPOLLIN);
  return 0;
}

static void take_own(void *of) {
  struct run *run = of;
  if (run->engine.control.got && !read_report(run)) loop_close(&run->engine.control);
  if (run->caller.signals.got) read_signals(run);
  if (run->caller.keeper.got) read_keeper(run);
  if (run->engine.errors.got) read_errors(run);
  if (run->net.names.got) run_serve_names(run);
  if (run->exec_in.got) run_on_exec_in(run);
  if (run->caller.parent.got) on_parent_end(run);
}

static uint64_t watch_rest(void *of) {
  struct run *run = of;
  (void)loop_watch(&run->caller.signals, EPOLLIN), (void)loop_watch(&run->caller.parent, EPOLLIN);
  return run->stop.has_begun ? run->stop.rest_ns : run->limits.deadline_ns;
}

static const struct part REST[] = {{watch_rest, take_own}, {watch_terminal, relay_terminal}, {run_watch_line, relay_line}, {NULL, NULL}};

/* The last output of the command. A reader may take as long as the run may; that of a stopped run gets a moment. */
static void show_the_rest(struct run *run) {
  run->stop.rest_ns = now_ns() + REST_MS * MS;
  while (terminal_is_pending(&run->terminal)) {
    uint64_t now = now_ns(), last = watch_rest(run);
    if (last && now >= last && run->stop.has_begun) return;
    if (last && now >= last) run_stop(run, CAUSE_DEADLINE, 0), run->outcome.cause = CAUSE_DEADLINE, run->stop.rest_ns = now;
    if (loop_turn(REST, run) < 0) return;
  }
}

/* Once the command has ended the sweep says the rest. */
static uint64_t watch_guard(void *of) {
  struct run *run = of;
  if (!is_running(run)) return 0;
  run->host.guard.fd = run->guard.events;
  (void)loop_watch(&run->host.guard, EPOLLIN);
  return run->guard.next_walk_ns;
}

static void look_at_guard(void *of) {
  struct run *run = of;
  if (!is_running(run)) return;
  if ((run->host.guard.got && guard_on_events(&run->guard)) || guard_on_time(&run->guard)) run_stop(run, CAUSE_PROTECTED, 0);
  if (run->guard.bare) run_record_failure(run, run->guard.bare, "launch: hide", run->guard.failed), run_kill(run);
}

static const struct part PARTS[] = {{watch_own, take_own}, {watch_terminal, relay_terminal}, {run_watch_line, relay_line}, {limits_due, look_at_limits},
                                    {watch_guard, look_at_guard}, {NULL, send_status_early}, {NULL, NULL}};

void run_watch(struct run *run) {
  while (!all_gone(run)) {
    if (loop_turn(PARTS, run) == 0) continue;
    run_record_failure(run, errno, "launch: poll", "");
    run_kill(run);
  }
  read_pending_reports(run);
  if (run->engine.errors.fd >= 0) read_errors(run);
  show_the_rest(run);
}
