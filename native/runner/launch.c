/*
 * Theory of operation. Launch stays on the host: it makes what must be removed again (the record of the run,
 * the cgroup), clones the stager (sandbox/root-fs.h) into the cgroup, finds what must be protected (lib/guard.h) while that works, and waits in one loop (lib/loop.h) for whatever comes first: reports of
 * the stager or init, a signal, the end of the caller, the deadline, the memory watchdog. Every reason to stop goes the same
 * way: SIGTERM for everything inside, a short grace, then SIGKILL for the cgroup and the engine. Launch is a subreaper and
 * the run is over when waitpid knows no child any more, so nothing can be left. If launch itself is killed, the engine dies
 * of PDEATHSIG, init of the control socket's end, the sweeper (runner/sweeper.h) sets aside what was made at protected names, and the next
 * launch removes what the record names.
 */
#include "runner/run.h"

#include "runner/freshness.h"
#include "runner/stream-check.h"
#include "lib/pages.h"
#include "lib/passed-signals.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

/* Inherited dispositions and masks, real-time ones included, are the caller's business: an ignored SIGCHLD would hang bwrap. */
static void take_signals(struct run *run) {
  static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGQUIT, SIGWINCH};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  for (int signal = 1; signal < _NSIG; signal++) sys_reset_signal(signal); /* KILL and STOP refuse */
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL); /* a caller's limit of file sizes is an error to be reported */
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&set, watched[i]);
  add_passed_signals(&set);
  if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) run_refuse(run, "launch: sigprocmask", "");
  run->caller.signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (run->caller.signals.fd < 0) run_refuse(run, "launch: signalfd", "");
}

/* A file that leaves out a wall is damaged: what is meant to be off says so. */
static void require_walls(struct run *run) {
  static const enum verb walls[] = {V_ENGINE, V_IDENTITY, V_NET, V_READONLY, V_MASK, V_LANDLOCK, V_SECCOMP, V_WORKDIR, V_TERMINAL};
  struct entry entry;
  errno = EINVAL;
  for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
    if (!launchfile_find(&run->file, walls[i], &entry)) run_refuse(run, "launch: launch file", "a wall is missing");
  if (run->warm.is_on && launchfile_find(&run->file, V_OBSERVE, &entry)) run_refuse(run, "launch: launch file", "no warm sandbox is observed");
  if (!launchfile_has_namespaces(&run->file) && (run->warm.is_on || run_serves(run) || launchfile_find(&run->file, V_OBSERVE, &entry)))
    run_refuse(run, "launch: launch file", "not without namespaces");
  /* The observer is meant for the first command, not for others in there; and the environment of the others came as a block. */
  if (run_serves(run) && (launchfile_find(&run->file, V_OBSERVE, &entry) || !run->command.block))
    run_refuse(run, "launch: launch file", "this sandbox serves nobody");
}

/* A limit that cannot be read is refused before anything starts. */
static uint64_t limit_of(struct run *run, enum verb verb, uint64_t max, const char *step) {
  struct entry entry;
  uint64_t number;
  if (!launchfile_find(&run->file, verb, &entry)) return 0;
  errno = EINVAL;
  if (parse_number(entry.word[0], max, &number) < 0 || number == 0) run_refuse(run, step, entry.word[0]);
  return number;
}

static void read_limits(struct run *run) {
  run->limits.deadline_ns = limit_of(run, V_DEADLINE, UINT64_MAX / MS / 2, "launch: deadline") * MS;
  run->limits.cpu_us = limit_of(run, V_CPU_TIME, INT64_MAX / 1000, "launch: cpu time") * 1000;
  run->limits.memory = limit_of(run, V_WATCH, INT64_MAX, "launch: memory watchdog");
  run->limits.has_watchdog = run->limits.memory > 0;
}

static void find_init(struct run *run) {
  ssize_t length = readlink("/proc/self/exe", run->init, sizeof run->init - sizeof "init");
  if (length < 0) run_refuse(run, "launch: find init", "/proc/self/exe");
  run->init[length] = 0;
  char *slash = strrchr(run->init, '/'), *name = slash ? slash + 1 : run->init;
  copy_text(name, sizeof run->init - (size_t)(name - run->init), "init");
  if (access(run->init, X_OK) < 0) run_refuse(run, "launch: find init", run->init);
}

void run_begin(struct run *run) {
  run->finish = run_finish;
  /* Field by field: the whole is large, mostly zero, and stays untouched where nothing needs it. */
  run->caller.signals.fd = run->caller.parent.fd = run->caller.keeper.fd = run->host.guard.fd = -1;
  run->host.records = run->host.record = run->host.cgroup_parent = run->host.cgroup = -1;
  run->layer.fd = run->engine.control.fd = run->engine.errors.fd = run->exec_in.fd = -1;
  terminal_none(&run->terminal);
  streams_note(&run->stdio.before);
  run->line = (struct line)LINE_NONE;
  guard_clear(&run->guard);
  run->net = (struct net_helper)NET_HELPER_NONE;
  run->observer = (struct observer)OBSERVER_NONE;
  run->stdio.files = (struct stream_files)STREAM_FILES_NONE;
  for (int i = 0; i < 3; i++) run->stdio.own[i] = i;
  run->outcome = (struct outcome)OUTCOME_UNKNOWN;
  run->outcome.begun_ns = now_ns();
  snprintf(run->id, sizeof run->id, "%lx%d", (unsigned long)now_ns() & 0xffffffffff, getpid());
}

/* Before anything is made: what comes from the caller's side, and not from a plan. */
void run_prepare_process(struct run *run) {
  run->caller.umask = umask(022); /* of what is made for the run on the host */
  take_signals(run);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) run_refuse(run, "launch: subreaper", "");
}

static void check_streams(struct run *run) {
  for (int i = 0; i < 3; i++)
    if (stream_check(run->stdio.own[i]) < 0) run_refuse(run, "launch: stream", stream_name(i));
}

/* A command with a terminal has no other streams. Those of a warm run come with its command. */
static void replace_files(struct run *run) {
  struct entry terminal;
  int which;
  /* A caller that gets output as frames keeps it himself. */
  run->stdio.files.keeps_errors = run->line.output[1].fd < 0 && launchfile_find(&run->file, V_KEEP_ERRORS, &terminal);
  if (run->warm.is_on || (launchfile_find(&run->file, V_TERMINAL, &terminal) && strcmp(terminal.word[0], "on") == 0)) return;
  if (stream_files_replace(&run->stdio.files, run->stdio.own, &which) < 0) run_refuse(run, "launch: carry stream", stream_name(which));
}

_Noreturn void run_carry_out(struct run *run) {
  if (!run->warm.is_on) check_streams(run); /* those of a warm run come with its command */
  require_walls(run);
  read_limits(run);
  find_init(run);
  run_open_record(run);
  run_prepare_warm(run);
  run_name_group(run);
  run_write_record(run); /* before there is anything to be removed: a record may name too much, never too little */
  run_make_group(run);
  run_make_layer(run);
  replace_files(run);
  if (!run->warm.is_on && run_measure_zones(run) < 0) run->finish(run);
  run_start(run);
  if (run_guard(run) < 0) run_kill(run);
  run_watch(run);
  run_conclude(run);
  run_finish(run);
}

static _Alignas(PAGE_OF_ITS_OWN) struct run run; /* too big for the stack of a constrained caller */

/* The first descriptor after the streams becomes that of the parent, if there is one. */
static void clean_descriptors(struct run *run, int parent) {
  unsigned first = STDERR_FILENO + 1;
  if (parent > (int)first && dup3(parent, (int)first, O_CLOEXEC) < 0) run_refuse(run, "launch: descriptor", "");
  run->caller.parent.fd = parent < 0 ? -1 : (int)first;
  if (sys_close_range(parent < 0 ? first : first + 1, ~0u) < 0) run_refuse(run, "launch: close_range", "");
}

void launch_here(const struct launch_call *call) {
  if (!is_fresh(call->file)) return;
  run_begin(&run);
  run.caller.call = call;
  run.file = *call->file;
  run.command.words = call->command;
  clean_descriptors(&run, call->parent);
  run_prepare_process(&run);
  run_carry_out(&run);
}
