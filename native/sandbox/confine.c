#include "sandbox/confine.h"

#include "lib/init-protocol.h"
#include "lib/landlock.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- Landlock ---- */

static void allow_beneath(int rules, const char *path, uint64_t rights) {
  if (rights == 0) return; /* The kernel refuses a rule that allows nothing: ENOMSG, landlock_add_rule(2). */
  struct landlock_path_beneath_attr beneath = {.allowed_access = rights};
  beneath.parent_fd = open(path, O_PATH | O_CLOEXEC);
  if (beneath.parent_fd < 0 || syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0)
    fail("init: landlock rule", path);
  close(beneath.parent_fd);
}

static int is_kind(const char *path, mode_t kind) {
  struct stat status;
  return stat(path, &status) == 0 && (status.st_mode & S_IFMT) == kind;
}

static int is_closed_below(const struct entry *entry, const char *path, size_t length) {
  if (entry->verb != V_ZONE || strcmp(entry->word[5], "closed") != 0) return 0;
  return strncmp(entry->word[1], path, length) == 0 && entry->word[1][length] == '/' && !is_kind(entry->word[1], S_IFREG);
}

/*
 * A rule holds for everything below its path, mounts included. So what has a closed zone below it is not opened as a whole. In a
 * read-only zone nothing can be made anyway, so the right to make is kept from writable ones alone.
 */
static uint64_t kept_from(const struct launchfile *file, const char *path) {
  uint64_t kept = 0;
  size_t position = 0, length = strlen(path);
  struct entry entry;
  while (launchfile_next(file, &position, &entry))
    if (is_closed_below(&entry, path, length))
      kept |= RIGHT_RESOLVE_UNIX | (strcmp(entry.word[2], "ro") == 0 ? 0 : RIGHT_MAKE_SOCK | RIGHT_MAKE_FIFO);
  return kept;
}

/* Sockets and FIFOs of a zone would lead to host processes: they can be made, and where the kernel can tell reached, only in
 * file systems of our own and in zones that are declared open. */
static int close_sockets(const struct launchfile *file, uint64_t scoped) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < LANDLOCK_RENAMES) fail_with(ENOSYS, "init: landlock version", "");
  uint64_t sockets = RIGHT_MAKE_SOCK | RIGHT_MAKE_FIFO | (abi >= LANDLOCK_CLOSES_SOCKETS ? RIGHT_RESOLVE_UNIX : 0);
  struct landlock_rules wanted = {.handled_fs = sockets | RIGHT_REFER};
  if (abi >= LANDLOCK_SCOPES) wanted.scoped = scoped;
  size_t size = abi >= LANDLOCK_SCOPES ? sizeof wanted : abi >= 4 ? offsetof(struct landlock_rules, scoped) : offsetof(struct landlock_rules, handled_net);
  int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
  if (rules < 0) fail("init: landlock", "");
  allow_beneath(rules, "/", RIGHT_REFER); /* renames between directories are not our business */
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry)) {
    const char *path = entry.verb == V_TMPFS ? entry.word[0] : entry.word[1];
    int open = entry.verb == V_TMPFS || (entry.verb == V_ZONE && strcmp(entry.word[5], "open") == 0);
    if (open) allow_beneath(rules, path, (is_kind(path, S_IFDIR) ? sockets : sockets & RIGHT_RESOLVE_UNIX) & ~kept_from(file, path));
  }
  return rules;
}

void scope_signals(void) {
  struct landlock_rules signals = {.scoped = SCOPE_SIGNALS};
  int rules = (int)syscall(SYS_landlock_create_ruleset, &signals, sizeof signals, 0);
  if (rules < 0 || syscall(SYS_landlock_restrict_self, rules, 0) < 0) fail("init: scope signals", "");
  close(rules);
}

/* ---- privileges ---- */

void drop_bounding_set(void) {
  int capability = 0;
  while (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) capability++;
  if (capability == 0 || errno != EINVAL) fail("init: drop bounding set", ""); /* EINVAL: one above the last */
}

void drop_capabilities(void) {
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) fail("init: clear ambient set", "");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct nothing[2] = {0};
  if (syscall(SYS_capset, &header, nothing) < 0) fail("init: drop capabilities", "");
}

struct confinement confine_prepare(const struct launchfile *file, int keeps_signals) {
  struct entry entry;
  int is_on = launchfile_find(file, V_LANDLOCK, &entry) && strcmp(entry.word[0], "on") == 0;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("init: no_new_privs", "");
  return (struct confinement){is_on ? close_sockets(file, SCOPE_ABSTRACT_SOCKETS | (keeps_signals ? SCOPE_SIGNALS : 0)) : -1};
}

void confine_enter(const struct confinement *confinement) {
  if (confinement->rules >= 0 && syscall(SYS_landlock_restrict_self, confinement->rules, 0) < 0) fail("init: landlock", "");
  if (confinement->rules >= 0) close(confinement->rules);
  drop_capabilities();
}

void give_up_privileges(const struct launchfile *file) {
  struct confinement all = confine_prepare(file, 1);
  drop_bounding_set();
  confine_enter(&all);
}

/* ---- seccomp ---- */

static int hexadecimal(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

int seccomp_read(const struct launchfile *file, struct sock_fprog *program) {
  struct entry entry;
  *program = (struct sock_fprog){0, NULL};
  if (!launchfile_find(file, V_SECCOMP, &entry)) return errno = EINVAL, -1;
  if (strcmp(entry.word[0], "off") == 0) return 0;
  static unsigned char bytes[BPF_MAXINSNS * sizeof(struct sock_filter)];
  size_t length = strlen(entry.word[0]) / 2;
  if (length == 0 || length > sizeof bytes || length % sizeof(struct sock_filter) || strlen(entry.word[0]) % 2)
    return errno = EINVAL, -1;
  for (size_t i = 0; i < length; i++) {
    int high = hexadecimal(entry.word[0][2 * i]), low = hexadecimal(entry.word[0][2 * i + 1]);
    if (high < 0 || low < 0) return errno = EINVAL, -1;
    bytes[i] = (unsigned char)(high << 4 | low);
  }
  *program = (struct sock_fprog){(unsigned short)(length / sizeof(struct sock_filter)), (struct sock_filter *)bytes};
  return 0;
}

#if defined __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#define OTHER_ABI 0x40000000u /* x32 numbers */
#elif defined __aarch64__
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define OTHER_ABI 0u
#endif
#define SETAFFINITY_32 241 /* of i386 and of ARM */

int processors_hold(const struct launchfile *file) {
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~OTHER_ABI),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 4, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SETAFFINITY_32, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  static const struct sock_fprog program = {sizeof code / sizeof *code, code};
  struct entry entry;
  return launchfile_find(file, V_AFFINITY, &entry) ? seccomp_install(&program) : 0;
}

int seccomp_install(const struct sock_fprog *program) {
  return program->len == 0 ? 0 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0);
}

/* ---- terminal ---- */

static void copy_size(int from, int to) {
  struct winsize size;
  if (ioctl(from, TIOCGWINSZ, &size) == 0) ioctl(to, TIOCSWINSZ, &size);
}

void terminal_open(int *master, int *slave, int like) {
  int number, unlock = 0;
  char path[32];
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0 || ioctl(*master, TIOCSPTLCK, &unlock) < 0 || ioctl(*master, TIOCGPTN, &number) < 0)
    fail("init: open terminal", "/dev/ptmx");
  snprintf(path, sizeof path, "/dev/pts/%d", number);
  *slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0) fail("init: open terminal", path);
  copy_size(like, *master);
}
