#include "net/walls.h"

#include "lib/filter-steps.h"
#include "lib/landlock.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- identity ---- */

static void take_id(uid_t id) {
  if (id == 0) return;
  if (setgroups(0, NULL) < 0) fail("net: setgroups", "");
  if (setresgid(id, id, id) < 0) fail("net: setresgid", "");
  if (setresuid(id, id, id) < 0) fail("net: setresuid", "");
}

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct nothing[2] = {0};
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) fail("net: clear ambient set", "");
  if (syscall(SYS_capset, &header, nothing) < 0) fail("net: capset", "");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("net: no_new_privs", "");
}

/* ---- bounds ---- */

#define MEMORY_MAX (256u << 20)

static void limit(int resource, rlim_t most) {
  struct rlimit now;
  if (getrlimit(resource, &now) < 0) fail("net: getrlimit", "");
  if (now.rlim_max < most) most = now.rlim_max;
  if (setrlimit(resource, &(struct rlimit){most, most}) < 0) fail("net: setrlimit", "");
}

static unsigned bound_resources(void) {
  struct rlimit files;
  limit(RLIMIT_AS, MEMORY_MAX);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 2 * CONNECTIONS_MAX + OTHER_DESCRIPTORS);
  if (getrlimit(RLIMIT_NOFILE, &files) < 0) fail("net: getrlimit", "");
  return files.rlim_cur > OTHER_DESCRIPTORS ? (unsigned)(files.rlim_cur - OTHER_DESCRIPTORS) / 2 : 0;
}

/* ---- Landlock ---- */

#define READ_FILE_AND_DIRECTORY (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static void allow_reading(int rules, const char *path) {
  struct landlock_path_beneath_attr beneath = {.allowed_access = READ_FILE_AND_DIRECTORY};
  beneath.parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (beneath.parent_fd < 0 && errno == ENOENT) return;
  if (beneath.parent_fd < 0 || syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0) fail("net: landlock rule", path);
  close(beneath.parent_fd);
}

/* Both files are replaced, not rewritten, so a directory is what may be read; either is often a link into another one. */
static void allow_directory_of(int rules, const char *link) {
  char path[PATH_MAX];
  if (!realpath(link, path)) return;
  char *slash = strrchr(path, '/');
  if (slash == path) return;
  *slash = 0;
  allow_reading(rules, path);
}

static void allow_resolver_files(int rules) {
  allow_reading(rules, "/etc");
  allow_directory_of(rules, "/etc/resolv.conf");
  allow_directory_of(rules, "/etc/hosts");
}

/* A kernel without it leaves the other walls: files of the caller could be read then, and none be written. */
static void hide_files(void) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return;
  uint64_t files = RIGHTS_OF_FIRST | (abi >= 2 ? RIGHT_REFER : 0) | (abi >= 3 ? RIGHT_TRUNCATE : 0) | (abi >= 5 ? RIGHT_IOCTL_DEVICE : 0);
  struct landlock_rules wanted = {
      .handled_fs = files, .handled_net = abi >= 4 ? NET_BIND_TCP : 0, .scoped = abi >= 6 ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0};
  size_t size = abi >= 6 ? sizeof wanted : abi >= 4 ? offsetof(struct landlock_rules, scoped) : offsetof(struct landlock_rules, handled_net);
  int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
  if (rules < 0) fail("net: landlock", "");
  allow_resolver_files(rules);
  if (syscall(SYS_landlock_restrict_self, rules, 0) < 0) fail("net: landlock", "");
  close(rules);
}

/* ---- system calls ---- */

#define WRITING_OR_MAKING (O_ACCMODE | O_CREAT | O_TRUNC)

/* Calls of the helper and its allocator. */
static struct sock_filter CALLS[] = {
    ONLY_OUR_CALLS,
    ALLOW(read), ALLOW(readv), ALLOW(write), ALLOW(writev), ALLOW(close), ALLOW(lseek), ALLOW(fcntl), ALLOW(fstat),
    ALLOW(recvfrom), ALLOW(recvmsg), ALLOW(sendto), ALLOW(sendmsg), ALLOW(connect), ALLOW(accept4), ALLOW(shutdown),
    ALLOW(socketpair), /* of UNIX sockets only: for the terminator */
    ALLOW(getsockname), ALLOW(getpeername), ALLOW(setsockopt), ALLOW(getsockopt),
    ALLOW(epoll_ctl), ALLOW(epoll_pwait), ALLOW(ppoll), ALLOW(futex), ALLOW(nanosleep), ALLOW(clock_nanosleep), ALLOW(clock_gettime),
    ALLOW(gettimeofday), ALLOW(getrandom),
    ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(brk),
    ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(rt_sigreturn), ALLOW(gettid), ALLOW(getpid), ALLOW(tkill),
    ALLOW(exit), ALLOW(exit_group), ALLOW(restart_syscall),
#ifdef SYS_epoll_wait
    ALLOW(epoll_wait),
#endif
#ifdef SYS_poll
    ALLOW(poll),
#endif
#ifdef SYS_open
    ALLOW_WITHOUT(open, 1, WRITING_OR_MAKING, SECCOMP_RET_ERRNO | EACCES),
#endif
    ALLOW_WITHOUT(openat, 2, WRITING_OR_MAKING, SECCOMP_RET_ERRNO | EACCES),
    ALLOW_WITHOUT(mmap, 2, PROT_EXEC, SECCOMP_RET_KILL_PROCESS),
    ALLOW_WITHOUT(mprotect, 2, PROT_EXEC, SECCOMP_RET_KILL_PROCESS),
    SKIP_IF(SYS_socket, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(args[0]), /* internet sockets alone */
    SKIP_IF(AF_INET, 1, 0),
    SKIP_IF(AF_INET6, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
};

static void filter_calls(void) {
  struct sock_fprog filter = {sizeof CALLS / sizeof *CALLS, CALLS};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0) fail("net: seccomp", "");
}

unsigned confine(uid_t id) {
  take_id(id);
  drop_capabilities();
  /* Changing ids clears the first and sets the second. Should launch be dead by now, the end of its socket says so. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("net: parent death signal", "");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail("net: not dumpable", "");
  unsigned connections = bound_resources();
  hide_files();
  filter_calls();
  return connections;
}
