#include "tools/container-network.h"

#include "lib/fd-message.h"
#include "lib/filter-steps.h"
#include "lib/launch-file.h"
#include "lib/report-failure.h"
#include "sandbox/network.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP "network: container"

/* ---- sockets ---- */

static void receive_plan(int host, struct launchfile *file) {
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  char byte;
  if (message_receive(host, &byte, 1, 0, fds, &count) != 1 || count != 1) fail_with(EBADMSG, STEP, "plan");
  const char *problem = launchfile_read(fds[0], file);
  if (problem) fail(STEP, *problem ? problem : "plan");
  close(fds[0]);
}

/* Runs in a separate process: a failure in there ends only that one, with a report. */
static _Noreturn void make(const char *socket, int report) {
  struct launchfile file;
  fail_through(report);
  int host = socket_to(socket, SOCK_SEQPACKET);
  if (host < 0) fail(STEP, socket);
  receive_plan(host, &file);
  network_make(&file, host);
  network_await_helper(host);
  _exit(0);
}

static int has_failed(struct outcome *outcome, int error, const char *step, const char *path) {
  outcome->cause = CAUSE_SETUP;
  outcome->error = error;
  copy_text(outcome->step, sizeof outcome->step, step);
  copy_text(outcome->path, sizeof outcome->path, path);
  return -1;
}

static int make_sockets(const char *socket, struct outcome *outcome) {
  int reports[2], status = 0;
  struct report report = {.kind = 0};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reports) < 0) return has_failed(outcome, errno, STEP, "socketpair");
  pid_t child = fork();
  if (child < 0) return has_failed(outcome, errno, STEP, "fork");
  if (child == 0) make(socket, reports[1]);
  close(reports[1]);
  ssize_t got = recv(reports[0], &report, sizeof report, 0);
  close(reports[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (got != sizeof report) return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : has_failed(outcome, 0, STEP, "ended without a report");
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  return has_failed(outcome, report.error, report.step, report.path);
}

/* ---- giving up what it took ---- */

/* As the runtime does where the container starts as the command's user: it may open its own streams again by their names. */
static void give_streams(uid_t uid, gid_t gid) {
  for (int fd = 0; fd <= 2; fd++) (void)!fchown(fd, uid, gid); /* one that has no owner (/dev/null, a socket) stays */
}

static int drop_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct nothing[2] = {0};
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return -1;
  return (int)syscall(SYS_capset, &header, nothing);
}

/* A capability outside of the bounding set cannot come back by execve either. */
static int empty_bounding_set(void) {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) return -1;
  return 0;
}

static int become(uid_t uid, gid_t gid) {
  if (empty_bounding_set() < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) return -1;
  if (drop_capabilities() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* another id: the kernel has forgotten it */
}

/* The filter of the container leaves this open for us alone. Other machines' calls end the process: the first filter does the same. */
static int close_netfilter(void) {
  struct sock_filter steps[] = {
      ONLY_OUR_CALLS,
      SKIP_IF(SYS_socket, 0, 5),
      LOAD(args[0]),
      SKIP_IF(AF_NETLINK, 0, 3),
      LOAD(args[2]),
      SKIP_IF(NETLINK_NETFILTER, 0, 1),
      ANSWER(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

int container_network_make(const struct container_network *network, struct outcome *outcome) {
  if (!network->socket) return 0;
  if (make_sockets(network->socket, outcome) < 0) return -1;
  give_streams(network->uid, network->gid);
  if (become(network->uid, network->gid) < 0) return has_failed(outcome, errno, STEP, "give up capabilities");
  return close_netfilter() < 0 ? has_failed(outcome, errno, STEP, "seccomp") : 0;
}
