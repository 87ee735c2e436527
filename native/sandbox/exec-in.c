#include "sandbox/exec-in.h"

#include "lib/children.h"
#include "lib/files.h"
#include "lib/init-protocol.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* From a signal to SIGKILL, as at the end of a run. */
#define GRACE_NS (250 * 1000000ull)
/* Above the places of init's descriptors. */
#define ABOVE 32

int exec_in_take(const int *given) {
  static const int places[] = {INIT_STDIN, INIT_STDOUT, INIT_STDERR, INIT_COMMAND};
  int high[EXEC_IN_DESCRIPTORS];
  for (int i = 0; i < EXEC_IN_DESCRIPTORS; i++) {
    high[i] = fcntl(given[i], F_DUPFD_CLOEXEC, ABOVE);
    if (high[i] < 0) _exit(125); /* no reader of reports exists yet */
  }
  int session = high[EXEC_IN_DESCRIPTORS - 1];
  fail_through(session);
  if (sys_close_range(0, ABOVE - 1) < 0) fail("init: close_range", "");
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (dup3(high[i], places[i], O_CLOEXEC) < 0) fail("init: dup3", "");
    close(high[i]);
  }
  for (int i = 0; i < 3; i++) /* what is opened from now on must not be in the place of the command's streams */
    if (dup3(session, i, O_CLOEXEC) < 0) fail("init: dup3", "");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) fail("init: subreaper", "");
  return session;
}

static int reap(pid_t child, int flags, int *wait_status) {
  int status, ended = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, flags)) > 0; flags = WNOHANG)
    if (pid == child) *wait_status = status, ended = 1;
  return ended;
}

/* ---- the end of its tree ---- */

/* The processes of it that one look has found; the next look finds more. Ascending, as /proc names them. */
struct tree {
  pid_t found[4096];
  size_t count;
};

static int compare(const void *a, const void *b) { return *(const pid_t *)a - *(const pid_t *)b; }

static int holds(const struct tree *tree, pid_t pid) { return bsearch(&pid, tree->found, tree->count, sizeof pid, compare) != NULL; }

/* 0 for one that has gone. */
static pid_t parent_of(const char *pid) {
  char path[64], stat[512];
  if ((size_t)snprintf(path, sizeof path, "/proc/%s/stat", pid) >= sizeof path) return 0;
  (void)read_small(AT_FDCWD, path, stat, sizeof stat);
  char *name_end = strrchr(stat, ')'); /* of a name that may hold anything; behind it a letter and the parent */
  return name_end && strlen(name_end) > 4 ? atoi(name_end + 4) : 0;
}

/* It starts no further process, and nothing gives the limit back. Returns 0 where it had been set, or cannot be. */
static int seal(pid_t pid) {
  const struct rlimit none = {0, 0};
  struct rlimit before;
  return prlimit(pid, RLIMIT_NPROC, &none, &before) == 0 && before.rlim_max > 0;
}

/* A child whose number is smaller than its parent's is found when it has become ours. Returns how many could still start something. */
static int seal_tree(struct tree *tree) {
  DIR *processes = opendir("/proc");
  int sealed = 0;
  tree->count = 0;
  for (struct dirent *entry; processes && tree->count < sizeof tree->found / sizeof *tree->found && (entry = readdir(processes));) {
    pid_t pid = atoi(entry->d_name), parent = pid > 0 ? parent_of(entry->d_name) : 0;
    if (!parent || (parent != getpid() && !holds(tree, parent))) continue;
    tree->found[tree->count++] = pid;
    sealed += seal(pid);
  }
  if (processes) closedir(processes);
  return sealed;
}

static void kill_child(pid_t child, const void *nothing) {
  (void)nothing;
  kill(child, SIGKILL);
}

/*
 * First every process in it loses the right to start another, then all are killed: each end makes room, which a fork bomb would fill faster
 * than we kill. The children of killed processes become ours, and are killed in the next round.
 */
static void kill_tree(pid_t child, int *wait_status) {
  static struct tree tree;
  for (;;) {
    while (seal_tree(&tree) > 0) continue;
    for (size_t i = 0; i < tree.count; i++) kill(tree.found[i], SIGKILL);
    if (children_each(kill_child, NULL) <= 0) return;
    reap(child, 0, wait_status);
  }
}

static int open_signals(void) {
  sigset_t set;
  sigfillset(&set); /* what everything in here is asked to end by is not for us: the command's end is to be told */
  int signals = sigprocmask(SIG_SETMASK, &set, NULL) < 0 ? -1 : 0;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  if (signals == 0) signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("init: signalfd", "");
  return signals;
}

/* Returns 0 when the other side is gone. */
static int obey(int session, pid_t child, uint64_t *kill_at) {
  struct request request;
  ssize_t got = recv(session, &request, sizeof request, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (got != sizeof request) return 0;
  kill(request.everyone ? -child : child, request.signal);
  if (request.everyone && !*kill_at) *kill_at = now_ns() + GRACE_NS;
  return 1;
}

/* Fills in its wait status and what became of its state. */
static void wait_for_end(int session, int signals, struct attended *attended, struct report *report) {
  pid_t child = attended->pid;
  struct pollfd watched[] = {{signals, POLLIN, 0}, {session, POLLIN, 0}, {-1, POLLIN, 0}};
  struct signalfd_siginfo info;
  uint64_t kill_at = 0;
  int wait_status = 0, is_wanted = 1;
  while (is_wanted && !reap(child, WNOHANG, &wait_status)) {
    uint64_t now = now_ns();
    if (kill_at && now >= kill_at) break;
    watched[2].fd = attended->state.in;
    if (poll(watched, 3, kill_at ? (int)((kill_at - now) / 1000000) + 1 : -1) < 0 && errno != EINTR) break;
    if (watched[0].revents) (void)!read(signals, &info, sizeof info); /* only wakes us */
    if (watched[1].revents) is_wanted = obey(session, child, &kill_at);
    if (watched[2].revents) kept_state_read(&attended->state);
  }
  kill_tree(child, &wait_status);
  report->wait_status = wait_status;
  report->state = (uint32_t)kept_state_pass(&attended->state, is_wanted && !kill_at && WIFEXITED(wait_status));
}

/* Of all that was reaped. */
static void note_usage(struct report *report) {
  struct children_usage usage = children_usage();
  report->cpu_us = usage.cpu_us, report->peak_bytes = usage.peak_bytes;
}

_Noreturn void exec_in_wait(int session, struct attended *attended) {
  int signals = open_signals();
  struct report report = {.kind = REPORT_STARTED, .at_ns = now_ns()}, note;
  if (report_send(session, &report, &attended->master, attended->master >= 0) < 0) kill(attended->pid, SIGKILL);
  if (attended->master >= 0) close(attended->master);
  report = (struct report){.kind = REPORT_ENDED, .is_filtered = (uint32_t)attended->is_filtered};
  wait_for_end(session, signals, attended, &report);
  note_usage(&report);
  if (read(attended->notes, &note, sizeof note) == sizeof note) report = note; /* it was never executed */
  report.at_ns = now_ns();
  (void)report_send(session, &report, NULL, 0);
  _exit(0);
}
