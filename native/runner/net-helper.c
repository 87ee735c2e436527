#include "runner/net-helper.h"

#include "lib/fd-message.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* For its report: it has nothing to do by then but to write it. */
#define REPORT_NS 1000000000ull

/* ---- the start ---- */

/* Signals stay blocked: those of the caller's terminal are the command's, and launch says when it is over. */
static _Noreturn void become_helper(const struct net_helper_start *start, pid_t launch, int inside, int report) {
  char id[16], names[] = "names", *argv[] = {"net", start->launch_file < 0 ? names : "plan", start->id ? id : NULL, NULL}, *const environment[] = {NULL};
  sigset_t all;
  fail_through(start->control);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) fail("net: open", "/dev/null");
  int plan = start->launch_file < 0 ? null : start->launch_file, control = start->control < 0 ? null : start->control;
  int terminator = start->terminator < 0 ? null : start->terminator;
  int grants = start->grants < 0 ? null : start->grants;
  const int from[] = {null, null, null, plan, control, inside, report, terminator, grants};
  if (place_descriptors(from, NET_DESCRIPTORS_END) < 0) fail("net: place descriptors", "");
  fail_through(NET_CONTROL);
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, NULL) < 0 || setsid() < 0) fail("net: signals", "");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != launch) _exit(125);
  snprintf(id, sizeof id, "%u", start->id);
  execve(start->program, argv, environment);
  fail("net: execute", start->program);
}

int net_helper_start(struct net_helper *helper, const struct net_helper_start *start) {
  int inside[2], report[2];
  pid_t launch = getpid();
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inside) < 0) return -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0) return -1;
  helper->pid = fork();
  if (helper->pid < 0) return -1;
  if (helper->pid == 0) become_helper(start, launch, inside[1], report[1]);
  close(inside[1]), close(report[1]);
  helper->report = report[0];
  return inside[0];
}

void net_helper_serve_names(struct net_helper *helper, const struct net_helper_start *start) {
  const struct net_sockets sockets = {.count = 1, .kind = {NET_SOCKET_DNS_UDP}};
  helper->inside = net_helper_start(helper, start);
  if (helper->inside >= 0) (void)message_send(helper->inside, &sockets, sizeof sockets, &helper->names.fd, 1); /* it ends without */
  loop_close(&helper->names);
}

/* ---- the end ---- */

/* A report of the helper is trusted for the network alone: texts get their end, and are printed as JSON. */
static int read_report(int socket, struct net_report *result) {
  uint64_t until = now_ns() + REPORT_NS;
  if (stream_receive(socket, &result->head, sizeof result->head, until) < 0 || result->head.rows > NET_ROWS_MAX) return -1;
  if (stream_receive(socket, result->row, result->head.rows * sizeof *result->row, until) < 0) return -1;
  for (uint32_t i = 0; i < result->head.rows; i++)
    result->row[i].host[NET_HOST_MAX - 1] = result->row[i].rule[NET_RULE_MAX - 1] = 0;
  return 0;
}

static void reap(struct net_helper *helper) {
  if (helper->pid > 0) {
    (void)kill(helper->pid, SIGKILL); /* it has reported, or will not */
    while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR) continue;
  }
  helper->pid = 0;
}

void net_helper_finish(struct net_helper *helper) {
  int has_network = helper->inside < 0;
  loop_close(&helper->names);
  if (helper->inside >= 0) close(helper->inside);
  helper->inside = -1;
  if (helper->report < 0) return;
  helper->result = calloc(1, sizeof *helper->result);
  int is_read = shutdown(helper->report, SHUT_WR) == 0 && helper->result && read_report(helper->report, helper->result) == 0;
  if (!is_read && has_network) net_helper_lost(helper);
  else if (!is_read || (!has_network && helper->result->head.rows == 0)) helper->result = NULL;
  close(helper->report);
  helper->report = -1;
  reap(helper);
}

void net_helper_lost(struct net_helper *helper) {
  static struct net_report lost = {.is_lost = 1};
  helper->result = &lost;
}
