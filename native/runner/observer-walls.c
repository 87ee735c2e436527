#include "runner/observer-walls.h"

#include "lib/filter-steps.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- rights ---- */

#define RIGHTS (1u << CAP_SYS_PTRACE | 1u << CAP_DAC_READ_SEARCH)

/* Of another user than root the sandbox's user namespace is his own, so he may look into it. */
static int take_id(uid_t id) {
  if (id == 0) return 0;
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0) return -1;
  return setresgid(id, id, id) < 0 ? -1 : setresuid(id, id, id);
}

/* Capabilities that a container has taken from its root are missing here, too. */
static int keep_rights(uid_t id) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct set[2];
  if (syscall(SYS_capget, &header, set) < 0) return -1;
  uint32_t kept = id ? set[0].permitted & RIGHTS : 0;
  set[0] = (struct __user_cap_data_struct){kept, kept, 0};
  set[1] = (struct __user_cap_data_struct){0};
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) return -1;
  return (int)syscall(SYS_capset, &header, set);
}

/* ---- bounds ---- */

#define DESCRIPTORS 32

static int limit(int resource, rlim_t most) { return setrlimit(resource, &(struct rlimit){most, most}); }

/* ---- system calls ---- */

/* O_ACCMODE of musl has O_PATH in it. */
#define WRITING_OR_MAKING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
/* Opening: with these flags alone. */
#define ALLOW_READING(call, argument) ALLOW_WITHOUT(call, argument, WRITING_OR_MAKING, SECCOMP_RET_KILL_PROCESS)

static int filter_calls(void) {
  static struct sock_filter steps[] = {
      ONLY_OUR_CALLS,
      ALLOW(ioctl), ALLOW(ppoll), ALLOW(process_vm_readv), ALLOW(openat2), ALLOW(readlinkat), ALLOW(fstat), ALLOW(fstatfs),
      ALLOW(newfstatat), ALLOW(fcntl), ALLOW(dup3), ALLOW(close), ALLOW(sendto), ALLOW(exit_group), ALLOW(restart_syscall), ALLOW(getppid),
#ifdef SYS_open
      ALLOW(poll), ALLOW(readlink), ALLOW_READING(open, 1),
#endif
      ALLOW_READING(openat, 2),
      ANSWER(SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int observer_confine(uid_t id) {
  sigset_t all;
  sigfillset(&all);
  (void)setsid(); /* signals of the caller's terminal are the command's */
  if (sigprocmask(SIG_SETMASK, &all, NULL) < 0) return -1;
  if (take_id(id) < 0 || keep_rights(id) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  /* Changing ids clears the first and sets the second. Should launch be dead by now, the end of its socket says so. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return -1;
  if (limit(RLIMIT_CORE, 0) < 0 || limit(RLIMIT_FSIZE, 0) < 0 || limit(RLIMIT_NOFILE, DESCRIPTORS) < 0) return -1;
  (void)prctl(PR_SET_NAME, "observer"); /* for ps; by then all walls but the last one stand */
  return filter_calls();
}
