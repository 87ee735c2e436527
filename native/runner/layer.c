/* The layer of a run with copy-on-write zones (lib/layer.h), made before the stager mounts it. */
#include "lib/layer.h"

#include "lib/layer-copy.h"
#include "lib/passed-signals.h"
#include "runner/host-mounts.h"
#include "runner/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* An overlay shows what lies under a mount in its lower directory, and takes changes to it: always a mistake. */
static void refuse_mounts_below(struct run *run) {
  struct entry zone;
  char point[PATH_MAX];
  size_t position = 0;
  while (launchfile_next(&run->file, &position, &zone)) {
    if (!is_layered(&zone)) continue;
    int found = mounts_below(zone.word[0], point, sizeof point);
    if (found < 0) run_refuse(run, "launch: mounts below cow zones", zone.word[0]);
    if (found > 0) errno = EXDEV, run_refuse(run, "launch: mount below a cow zone", point);
  }
}

static int begin_size(struct run *run, const struct entry *cow) {
  uint64_t limit;
  if (parse_number(cow->word[2], UINT64_MAX, &limit) < 0) return errno = EINVAL, -1;
  layer_size_begin(&run->layer.size, run->layer.fd, limit, now_ns());
  return 0;
}

/* ---- copies ---- */

static int copy_zone(int layer, size_t number, const struct entry *zone) {
  layer_name name;
  layer_zone_name(number, name);
  int source = layer_open_source(zone), base = source < 0 || mkdirat(layer, name, 0700) < 0 ? -1 : open_beneath(layer, name, O_RDONLY | O_DIRECTORY);
  return base < 0 ? -1 : copy_tree(source, base, LAYER_UPPER);
}

/* Ends with errno. A signal to stop, from a terminal or anybody, ends it as it would end any program. */
static _Noreturn void copy_zones(const struct run *run) {
  struct entry zone;
  sigset_t passed;
  size_t position = 0, number = 0;
  sigemptyset(&passed);
  add_passed_signals(&passed);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || sigprocmask(SIG_SETMASK, &passed, NULL) < 0) _exit(errno);
  while (launchfile_next(&run->file, &position, &zone))
    if (is_layered(&zone) && copy_zone(run->layer.fd, number++, &zone) < 0) _exit(errno ? errno : EIO);
  _exit(0);
}

static void end_copy(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static _Noreturn void cancel_copy(struct run *run, pid_t child, int signal) {
  end_copy(child);
  run->outcome.cause = CAUSE_CANCELLED;
  run->outcome.cancelled_by = signal;
  run->finish(run);
}

static _Noreturn void refuse_size(struct run *run, const struct entry *cow) {
  errno = EDQUOT;
  run_refuse(run, "launch: copy zones", cow->word[0]);
}

static uint64_t watch_copy(void *of) {
  struct run *run = of;
  (void)loop_watch(&run->caller.signals, EPOLLIN);
  return layer_size_due(&run->layer.size);
}

static const struct part COPY[] = {{watch_copy, NULL}, {NULL, NULL}};

/* The wait status of the child. Nothing else runs yet. */
static int wait_for_copy(struct run *run, const struct entry *cow, pid_t child) {
  struct signalfd_siginfo info;
  for (int status;;) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0) run_refuse(run, "launch: wait", "copy zones");
    if (ended > 0) return status;
    (void)loop_turn(COPY, run);
    if (layer_size_is_over(&run->layer.size, now_ns(), 0)) end_copy(child), refuse_size(run, cow);
    while (read(run->caller.signals.fd, &info, sizeof info) == sizeof info)
      if (is_passed_signal((int)info.ssi_signo)) note_early_signal(&run->stop, (int)info.ssi_signo);
      else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGWINCH) cancel_copy(run, child, (int)info.ssi_signo);
  }
}

static int has_copies(const struct launchfile *file) {
  struct entry zone;
  size_t position = 0;
  while (launchfile_next(file, &position, &zone))
    if (is_copied(&zone)) return 1;
  return 0;
}

/* In another process: it can be large, and the end of a run must end it. */
static void make_copies(struct run *run, const struct entry *cow) {
  if (!has_copies(&run->file)) return;
  if (begin_size(run, cow) < 0) run_refuse(run, "launch: limit of layer", cow->word[2]);
  pid_t child = fork();
  if (child < 0) run_refuse(run, "launch: fork", "copy zones");
  if (child == 0) copy_zones(run);
  int status = wait_for_copy(run, cow, child);
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  if (errno) run_refuse(run, "launch: copy zones", cow->word[0]);
  if (layer_size_is_over(&run->layer.size, now_ns(), 1)) refuse_size(run, cow);
}

static int is_new(const struct entry *cow) { return strcmp(cow->word[1], "new") == 0; }

void run_make_layer(struct run *run) {
  struct entry cow;
  if (!launchfile_find(&run->file, V_COW, &cow)) return;
  refuse_mounts_below(run);
  run->layer.id = is_new(&cow) ? run->id : cow.word[1];
  run->layer.fd = is_new(&cow) ? layer_create(cow.word[0], run->id) : layer_open(cow.word[0], run->layer.id);
  if (run->layer.fd < 0) run_refuse(run, is_new(&cow) ? "launch: make layer" : "launch: open layer", cow.word[0]);
  if (!is_new(&cow)) {
    if (layer_resume(run->layer.fd, run->layer.id, &run->file) < 0) run_refuse(run, "launch: go on with layer", run->layer.id);
    return;
  }
  errno = EOPNOTSUPP;
  if (run->warm.is_on && has_copies(&run->file)) run_refuse(run, "launch: copy without a command", cow.word[0]);
  if (run->warm.is_on) return;
  struct timespec since = layer_now();
  make_copies(run, &cow);
  /* A copy that was cut off must never have a record: all that it lacks would be listed as deleted. */
  if (layer_record(run->layer.fd, run->layer.id, &run->file, since) < 0) run_refuse(run, "launch: record of the layer", cow.word[0]);
}

int run_begin_layer(const struct run *run) { return run->layer.fd < 0 ? 0 : layer_record(run->layer.fd, run->layer.id, &run->file, layer_now()); }

int run_limit_layer(struct run *run) {
  struct entry cow;
  if (run->layer.fd < 0 || !launchfile_find(&run->file, V_COW, &cow) || begin_size(run, &cow) == 0) return 0;
  return run_record_failure(run, EINVAL, "launch: limit of layer", cow.word[2]), -1;
}

static int is_worth_keeping(const struct run *run, const struct entry *cow) {
  return !is_new(cow) || (run->outcome.cause != CAUSE_SETUP && layer_may_have_changes(run->layer.fd, &run->file));
}

void run_settle_layer(struct run *run) {
  static char path[PATH_MAX];
  struct entry cow;
  if (run->layer.fd < 0 || run->outcome.layer || !launchfile_find(&run->file, V_COW, &cow) || !is_worth_keeping(run, &cow)) return;
  if (run->outcome.cause == CAUSE_EXIT && layer_size_is_over(&run->layer.size, now_ns(), 1)) run->outcome.cause = CAUSE_DISK;
  snprintf(path, sizeof path, "%s/%s", cow.word[0], run->layer.id);
  run->outcome.layer = path;
  flock(run->layer.fd, LOCK_UN); /* for all that have a copy of the descriptor, the sweeper among them */
}

void run_release_layer(struct run *run) {
  struct entry cow;
  run_settle_layer(run);
  if (run->layer.fd < 0 || run->outcome.layer || !launchfile_find(&run->file, V_COW, &cow)) return;
  /* Files that could not be removed are in `llm-do ps --cow`, or have no record: `llm-do prune` removes them. */
  (void)layer_remove(cow.word[0], run->layer.id);
}
