#include "runner/sweeper.h"

#include "lib/cgroup.h"
#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* From the kill of its first process to the end of the last one inside. */
#define END_MS 5000
/* bwrap's own process may end before PID 1 does: what is found nothing of twice in a row is left alone. */
#define PAUSE_US 100000
#define QUIET_SWEEPS 2
#define SWEEPS_MAX 20

static int is_needed(const struct guard *guard) {
  for (size_t i = 0; i < guard->zones; i++)
    if (guard->zone[i].fd >= 0 && (guard->zone[i].has_git || guard->zone[i].names > 0)) return 1;
  return 0;
}

static int compare_numbers(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The caller's streams above all: their readers would wait for our end. */
static int close_all_but(int *keep, size_t count) {
  unsigned from = 0;
  qsort(keep, count, sizeof *keep, compare_numbers);
  for (size_t i = 0; i < count; i++) {
    if (keep[i] < 0) continue;
    if ((unsigned)keep[i] > from && sys_close_range(from, (unsigned)keep[i] - 1) < 0) return -1;
    from = (unsigned)keep[i] + 1;
  }
  return sys_close_range(from, ~0u);
}

/* Nothing here may end it: what fails costs a caller at most a wait for our end, which launch brings about. */
static void stand_apart(const struct sweeper *sweeper, int launch, int engine, int *keep) {
  const struct guard *guard = sweeper->guard;
  sigset_t all;
  sigfillset(&all);
  (void)prctl(PR_SET_NAME, "sweeper"); /* for ps */
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)setsid();
  for (size_t i = 0; i < guard->zones; i++) keep[i] = guard->zone[i].fd;
  keep[guard->zones] = launch, keep[guard->zones + 1] = engine, keep[guard->zones + 2] = sweeper->cgroup;
  (void)close_all_but(keep, guard->zones + 3);
}

static void wait_for(int process, int ms) {
  struct pollfd ended = {process, POLLIN, 0};
  while (poll(&ended, 1, ms) < 0) continue; /* nothing interrupts it but tracers */
}

static void end_sandbox(const struct sweeper *sweeper, int engine) {
  if (sweeper->cgroup >= 0) cgroup_kill(sweeper->cgroup);
  if (sweeper->ends_alone) wait_for(engine, END_MS);
  (void)sys_pidfd_send_signal(engine, SIGKILL);
  wait_for(engine, END_MS);
}

static void sweep(struct guard *guard, const char *run) {
  guard->events = -1; /* closed */
  guard->seen_zone = NULL;
  for (int sweeps = 0, quiet = 0; quiet < QUIET_SWEEPS && sweeps < SWEEPS_MAX; sweeps++) {
    if (sweeps) usleep(PAUSE_US);
    guard->attempts = 0;
    quiet = guard_sweep(guard, run) > 0 ? 0 : quiet + 1;
  }
}

static _Noreturn void stand_by(const struct sweeper *sweeper, int launch, int engine, int *keep) {
  stand_apart(sweeper, launch, engine, keep);
  wait_for(launch, -1);
  end_sandbox(sweeper, engine);
  sweep(sweeper->guard, sweeper->run);
  _exit(0);
}

pid_t sweeper_start(const struct sweeper *sweeper) {
  if (!is_needed(sweeper->guard)) return 0;
  int launch = sys_pidfd_open(getpid()), engine = launch < 0 ? -1 : sys_pidfd_open(sweeper->engine);
  int *keep = engine < 0 ? NULL : calloc(sweeper->guard->zones + 3, sizeof *keep);
  pid_t child = keep ? sys_clone_beside() : -1;
  if (child == 0) stand_by(sweeper, launch, engine, keep);
  free(keep);
  return close_with(launch, close_with(engine, child));
}

void sweeper_dismiss(pid_t pid) {
  if (pid > 0) (void)kill(pid, SIGKILL); /* ESRCH: it has ended already */
}

void sweeper_end(pid_t pid) {
  sweeper_dismiss(pid);
  while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) continue;
}
