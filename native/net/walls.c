#include "net/walls.h"

#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
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

/* As of ABI 6; the kernel's own headers may be older. */
struct rules {
  uint64_t handled_fs, handled_net, scoped;
};
#define READ_FILE_AND_DIRECTORY (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RIGHTS_V1 ((1ull << 13) - 1)
#define RIGHT_REFER (1ull << 13)    /* 2 */
#define RIGHT_TRUNCATE (1ull << 14) /* 3 */
#define RIGHT_IOCTL (1ull << 15)    /* 5 */
#define RIGHT_BIND_TCP (1ull << 0)  /* 4 */
#define SCOPES (3ull)               /* 6: abstract sockets, signals */

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
  struct rules wanted = {.handled_fs = RIGHTS_V1 | (abi >= 2 ? RIGHT_REFER : 0) | (abi >= 3 ? RIGHT_TRUNCATE : 0) | (abi >= 5 ? RIGHT_IOCTL : 0),
                         .handled_net = abi >= 4 ? RIGHT_BIND_TCP : 0,
                         .scoped = abi >= 6 ? SCOPES : 0};
  size_t size = abi >= 6 ? sizeof wanted : abi >= 4 ? offsetof(struct rules, scoped) : offsetof(struct rules, handled_net);
  int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
  if (rules < 0) fail("net: landlock", "");
  allow_resolver_files(rules);
  if (syscall(SYS_landlock_restrict_self, rules, 0) < 0) fail("net: landlock", "");
  close(rules);
}

/* ---- system calls ---- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter of the helper knows x86-64 and arm64"
#endif

/* Calls of the helper and its allocator. */
static const int ALLOWED[] = {
    SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_close, SYS_lseek, SYS_fcntl, SYS_fstat,
    SYS_recvfrom, SYS_recvmsg, SYS_sendto, SYS_sendmsg, SYS_connect, SYS_accept4, SYS_shutdown,
    SYS_socketpair, /* of UNIX sockets only: for the terminator */
    SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
    SYS_epoll_ctl, SYS_epoll_pwait, SYS_ppoll, SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom,
    SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
    SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_gettid, SYS_getpid, SYS_tkill,
    SYS_exit, SYS_exit_group, SYS_restart_syscall,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
};

#define ANSWERS_MAX 160
#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n)) /* the low half, on little-endian machines */

struct program {
  struct sock_filter step[ANSWERS_MAX];
  unsigned short length;
};

static void put(struct program *to, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf) {
  if (to->length == ANSWERS_MAX) fail_with(E2BIG, "net: seccomp", "");
  to->step[to->length++] = (struct sock_filter){code, jt, jf, k};
}

static void load(struct program *to, size_t offset) { put(to, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void answer(struct program *to, uint32_t answer) { put(to, BPF_RET | BPF_K, answer, 0, 0); }

static void allow(struct program *to, int number) {
  put(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
  answer(to, SECCOMP_RET_ALLOW);
}

/* A call with one argument whose bits of `mask` are exactly `bits`; else `otherwise`. */
static void allow_with(struct program *to, int number, unsigned argument, uint32_t mask, uint32_t bits, uint32_t otherwise) {
  put(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 5);
  load(to, ARGUMENT(argument));
  put(to, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
  answer(to, SECCOMP_RET_ALLOW);
  answer(to, otherwise);
}

static void allow_internet_sockets(struct program *to) {
  put(to, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5);
  load(to, ARGUMENT(0));
  put(to, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1);
  answer(to, SECCOMP_RET_ALLOW);
  answer(to, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

#define WRITING_OR_MAKING (O_ACCMODE | O_CREAT | O_TRUNC)

static void allow_calls(struct program *to) {
  for (size_t i = 0; i < sizeof ALLOWED / sizeof *ALLOWED; i++) allow(to, ALLOWED[i]);
  allow_internet_sockets(to);
  allow_with(to, SYS_openat, 2, WRITING_OR_MAKING, O_RDONLY, SECCOMP_RET_ERRNO | EACCES);
#ifdef SYS_open
  allow_with(to, SYS_open, 1, WRITING_OR_MAKING, O_RDONLY, SECCOMP_RET_ERRNO | EACCES);
#endif
  allow_with(to, SYS_mmap, 2, PROT_EXEC, 0, SECCOMP_RET_KILL_PROCESS);
  allow_with(to, SYS_mprotect, 2, PROT_EXEC, 0, SECCOMP_RET_KILL_PROCESS);
}

static void filter_calls(void) {
  static struct program program;
  load(&program, offsetof(struct seccomp_data, arch));
  put(&program, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  answer(&program, SECCOMP_RET_KILL_PROCESS);
  load(&program, NUMBER);
  allow_calls(&program);
  answer(&program, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog filter = {program.length, program.step};
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
