/* first: what can be done to PID 1 from inside. One line for each call. */
#include "answer.h"
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIDFD_GETFD = 438 };

/* The same call with bits above those that the kernel reads, where a filter might compare all of them. */
static const uint64_t HIGH = 1ull << 40;

static void try_limits(void) {
  struct rlimit unchanged, low;
  if (prlimit(1, RLIMIT_NOFILE, NULL, &unchanged) < 0) answer("prlimit-read", -1);
  low = (struct rlimit){64, 64};
  answer("prlimit", prlimit(1, RLIMIT_NOFILE, &low, NULL));
  answer("prlimit-high", syscall(SYS_prlimit64, 1 | HIGH, RLIMIT_NOFILE, &low, NULL));
}

static void try_scheduling(void) {
  struct sched_param none = {0};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  /* struct sched_attr, which glibc does not declare: size, policy, flags, nice, priority and the times of a deadline. */
  struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t times[3]; } attributes = {
      .size = sizeof attributes, .policy = SCHED_IDLE};
  answer("setpriority", setpriority(PRIO_PROCESS, 1, 19));
  answer("setpriority-high", syscall(SYS_setpriority, PRIO_PROCESS, 1 | HIGH, 19));
  answer("sched_setscheduler", sched_setscheduler(1, SCHED_IDLE, &none));
  answer("sched_setparam", sched_setparam(1, &none));
  answer("sched_setattr", syscall(SYS_sched_setattr, 1, &attributes, 0));
  answer("sched_setaffinity", sched_setaffinity(1, sizeof one, &one));
  answer("ioprio_set", syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 1, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 7)));
}

static void try_memory(void) {
  char byte = 0;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  answer("ptrace", ptrace(PTRACE_SEIZE, 1, 0, 0));
  answer("process_vm_writev", process_vm_writev(1, &here, 1, &there, 1, 0));
  answer("mem", open("/proc/1/mem", O_RDWR | O_CLOEXEC));
  answer("exe", open("/proc/1/exe", O_WRONLY | O_CLOEXEC));
  answer("root", open("/proc/1/root", O_RDONLY | O_CLOEXEC));
  answer("fd", open("/proc/1/fd", O_RDONLY | O_CLOEXEC));
  answer("environ", open("/proc/1/environ", O_RDONLY | O_CLOEXEC));
  answer("oom", open("/proc/1/oom_score_adj", O_WRONLY | O_CLOEXEC));
  int first = syscall(SYS_pidfd_open, 1, 0);
  answer("pidfd_getfd", first < 0 ? -1 : syscall(PIDFD_GETFD, first, 0, 0));
}

int main(void) {
  try_limits();
  try_scheduling();
  try_memory();
  /* PID 1 of a namespace is sent what it has a handler for; SIGKILL and SIGSTOP from inside are dropped by the kernel
   * (SIGSTOP is left out: a tracee takes it, and then the control never ends). */
  kill(1, SIGKILL);
  return 0;
}
