#include "sandbox/attendant.h"

#include "lib/init-protocol.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* From a signal to SIGKILL, as at the end of a run. */
#define GRACE_NS (250 * 1000000ull)
/* Above the places of init's descriptors. */
#define ABOVE 32

int attendant_take(const int *given) {
  static const int places[] = {INIT_STDIN, INIT_STDOUT, INIT_STDERR, INIT_COMMAND};
  int high[ENTER_DESCRIPTORS];
  for (int i = 0; i < ENTER_DESCRIPTORS; i++) {
    high[i] = fcntl(given[i], F_DUPFD_CLOEXEC, ABOVE);
    if (high[i] < 0) _exit(125); /* there is nobody yet who could be told */
  }
  int session = high[ENTER_DESCRIPTORS - 1];
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

/* Each followed by a space; those that do not fit are for the next round, and half a number is nobody's. 0 without any. */
static ssize_t read_children(char *pids, size_t room) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? -1 : read(fd, pids, room - 1);
  if (fd >= 0) close(fd);
  pids[size > 0 ? size : 0] = 0;
  char *last = strrchr(pids, ' ');
  if (last) *last = 0;
  return size;
}

static int reap(pid_t child, int flags, int *wait_status) {
  int status, ended = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, flags)) > 0; flags = WNOHANG)
    if (pid == child) *wait_status = status, ended = 1;
  return ended;
}

/* The children of what is killed become ours, and are killed in the next round. */
static void kill_tree(pid_t child, int *wait_status) {
  char pids[4096], *rest;
  while (read_children(pids, sizeof pids) > 0) {
    rest = NULL;
    for (char *pid = strtok_r(pids, " ", &rest); pid; pid = strtok_r(NULL, " ", &rest))
      if (atoi(pid) > 0) kill(atoi(pid), SIGKILL);
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
  kill(-child, request.signal);
  if (!*kill_at) *kill_at = now_ns() + GRACE_NS;
  return 1;
}

/* Returns its wait status. */
static int wait_for_end(int session, int signals, pid_t child) {
  struct pollfd watched[] = {{signals, POLLIN, 0}, {session, POLLIN, 0}};
  struct signalfd_siginfo info;
  uint64_t kill_at = 0;
  int wait_status = 0, is_wanted = 1;
  while (is_wanted && !reap(child, WNOHANG, &wait_status)) {
    uint64_t now = now_ns();
    if (kill_at && now >= kill_at) break;
    if (poll(watched, 2, kill_at ? (int)((kill_at - now) / 1000000) + 1 : -1) < 0 && errno != EINTR) break;
    if (watched[0].revents) (void)!read(signals, &info, sizeof info); /* only wakes us */
    if (watched[1].revents) is_wanted = obey(session, child, &kill_at);
  }
  kill_tree(child, &wait_status);
  return wait_status;
}

_Noreturn void attendant_wait(int session, const struct attended *attended) {
  int signals = open_signals();
  struct report report = {.kind = REPORT_STARTED, .at_ns = now_ns()}, note;
  if (report_send(session, &report, &attended->master, attended->master >= 0) < 0) kill(attended->pid, SIGKILL);
  if (attended->master >= 0) close(attended->master);
  report = (struct report){.kind = REPORT_ENDED, .wait_status = wait_for_end(session, signals, attended->pid)};
  if (read(attended->notes, &note, sizeof note) == sizeof note) report = note; /* it was never executed */
  report.at_ns = now_ns();
  (void)report_send(session, &report, NULL, 0);
  _exit(0);
}
