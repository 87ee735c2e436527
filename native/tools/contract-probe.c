/*
 * probe: tries what a sandbox must not allow, one attempt a word, and prints one line for each: what was tried, a blank, and
 * `ok` or the name of the error. For llm-do doctor --self-test and the escape tests; it is shown inside by a read-only zone.
 * It decides nothing: the contract (src/doctor) knows what the lines mean. Needs no file but itself.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- saying ---- */

static const struct {
  int number;
  const char *name;
} ERRORS[] = {
    {EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"}, {EIO, "EIO"}, {ENXIO, "ENXIO"}, {EBADF, "EBADF"},
    {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"}, {EFAULT, "EFAULT"}, {EBUSY, "EBUSY"}, {EEXIST, "EEXIST"},
    {EXDEV, "EXDEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"}, {ENOTTY, "ENOTTY"}, {EFBIG, "EFBIG"},
    {ENOSPC, "ENOSPC"}, {EROFS, "EROFS"}, {EMLINK, "EMLINK"}, {ENOSYS, "ENOSYS"}, {ENOTEMPTY, "ENOTEMPTY"}, {ELOOP, "ELOOP"},
    {EDQUOT, "EDQUOT"}, {EAFNOSUPPORT, "EAFNOSUPPORT"}, {EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {ENETUNREACH, "ENETUNREACH"},
    {ECONNREFUSED, "ECONNREFUSED"}, {EHOSTUNREACH, "EHOSTUNREACH"}, {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"}, {EOPNOTSUPP, "EOPNOTSUPP"},
};

static const char *error_name(int error) {
  static char number[16];
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].number == error) return ERRORS[i].name;
  snprintf(number, sizeof number, "%d", error);
  return number;
}

/* `result` is -1 with errno for a failure. */
static void print_result(const char *what, long result) {
  printf("%s %s\n", what, result >= 0 ? "ok" : error_name(errno));
  fflush(stdout);
}

/* ---- files ---- */

static void try_stat(const char *path) {
  struct stat status;
  print_result(path, lstat(path, &status));
}

static void try_write_open(const char *path) { print_result(path, open(path, O_WRONLY | O_CLOEXEC)); }

static void try_create(const char *path) { print_result(path, open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)); }

static void print_flags(const char *path) {
  struct statvfs status;
  if (statvfs(path, &status) < 0) return print_result(path, -1);
  printf("%s %s%s%s\n", path, status.f_flag & ST_RDONLY ? "ro" : "rw", status.f_flag & ST_NOSUID ? ",nosuid" : "",
         status.f_flag & ST_NODEV ? ",nodev" : "");
}

static int is_empty(const char *path) {
  int count = 0;
  DIR *entries = opendir(path);
  if (!entries) return 0;
  while (readdir(entries)) count++;
  closedir(entries);
  return count == 2;
}

/* Prints the kind of a path that should be masked. */
static void print_kind(const char *path) {
  struct stat status;
  if (stat(path, &status) < 0) return print_result(path, -1);
  const char *kind = "other";
  if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) kind = "null";
  if (S_ISDIR(status.st_mode) && is_empty(path)) kind = "empty";
  printf("%s %s\n", path, kind);
}

static void flood_inodes(const char *directory, long most) {
  char path[4096];
  long made = 0;
  for (; made < most; made++) {
    snprintf(path, sizeof path, "%s/flood-%ld", directory, made);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) break;
    close(fd);
  }
  printf("%s %ld %s\n", directory, made, made == most ? "ok" : error_name(errno));
}

static void fill(const char *path, long long most) {
  static char block[1 << 16];
  long long written = 0;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return print_result(path, -1);
  while (written < most) {
    ssize_t got = write(fd, block, sizeof block);
    if (got < 0) break;
    written += got;
  }
  printf("%s %lld %s\n", path, written, written >= most ? "ok" : error_name(errno));
  close(fd);
  unlink(path);
}

/* Every call that can put set-id bits on a file of the directory. Each leaves its file for a look from outside. */
static void plant_setuid(const char *directory) {
  const mode_t bits = 06755;
  if (chdir(directory) < 0) return print_result(directory, -1);
  int fd = open("fchmod", O_CREAT | O_WRONLY, 0755);
  close(open("chmod", O_CREAT | O_WRONLY, 0755)), close(open("fchmodat", O_CREAT | O_WRONLY, 0755));
  close(open("fchmodat2", O_CREAT | O_WRONLY, 0755)), close(open("capability", O_CREAT | O_WRONLY, 0755));
#ifdef SYS_chmod
  print_result("chmod", syscall(SYS_chmod, "chmod", bits));
  print_result("open", syscall(SYS_open, "open", O_CREAT | O_WRONLY, bits));
  print_result("creat", syscall(SYS_creat, "creat", bits));
  print_result("mknod", syscall(SYS_mknod, "mknod", S_IFREG | bits, 0));
#endif
  print_result("fchmod", syscall(SYS_fchmod, fd, bits));
  print_result("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "fchmodat", bits));
  print_result("fchmodat2", syscall(452, AT_FDCWD, "fchmodat2", bits, 0)); /* Linux 6.6, newer than many headers */
  print_result("openat", syscall(SYS_openat, AT_FDCWD, "openat", O_CREAT | O_WRONLY, bits));
  print_result("mknodat", syscall(SYS_mknodat, AT_FDCWD, "mknodat", S_IFREG | bits, 0));
  /* The compare must not stop at 32 bits of an argument that the kernel cuts. */
  print_result("fchmod-high", syscall(SYS_fchmod, fd, (1ull << 32) | bits));
  static const uint32_t capability[] = {0x02000001, 0xffffffff, 0xffffffff, 0, 0}; /* VFS_CAP_REVISION_2, effective */
  print_result("capability", syscall(SYS_setxattr, "capability", "security.capability", capability, sizeof capability, 0));
}

/* ---- system calls ---- */

#define NO (-1) /* this architecture does not have it */
#ifdef __x86_64__
#define X86(number) number
#else
#define X86(number) NO
#endif

/* Harmless arguments: where the filter is not in the way, the kernel itself refuses them or nothing happens. */
static const struct {
  const char *name;
  long number;
  unsigned long argument[5];
} CALLS[] = {
    {"init_module", SYS_init_module, {0}}, {"finit_module", SYS_finit_module, {-1ul}}, {"delete_module", SYS_delete_module, {0}},
    {"kexec_load", SYS_kexec_load, {0, 1ul << 20}}, {"bpf", SYS_bpf, {~0ul}}, {"perf_event_open", SYS_perf_event_open, {0}},
    {"userfaultfd", SYS_userfaultfd, {1 /* UFFD_USER_MODE_ONLY */}}, {"mount", SYS_mount, {0}}, {"umount2", SYS_umount2, {0}},
    {"pivot_root", SYS_pivot_root, {0}}, {"chroot", SYS_chroot, {(unsigned long)"/"}}, {"setns", SYS_setns, {-1ul}},
    {"swapon", SYS_swapon, {0}}, {"swapoff", SYS_swapoff, {0}}, {"reboot", SYS_reboot, {0}}, {"quotactl", SYS_quotactl, {~0ul}},
    {"keyctl", SYS_keyctl, {0, -3ul}}, {"add_key", SYS_add_key, {0}}, {"request_key", SYS_request_key, {0}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1ul}}, {"kcmp", SYS_kcmp, {1, 1, 0}}, {"pidfd_getfd", 438, {-1ul}},
    {"clock_settime", SYS_clock_settime, {0, 0}}, {"settimeofday", SYS_settimeofday, {0, 0}},
    {"sethostname", SYS_sethostname, {0, 1}}, {"setdomainname", SYS_setdomainname, {0, 1}},
    {"fanotify_init", SYS_fanotify_init, {~0ul}}, {"mbind", SYS_mbind, {0, 0, 99}}, {"set_mempolicy", SYS_set_mempolicy, {99}},
    {"migrate_pages", SYS_migrate_pages, {0}}, {"move_pages", SYS_move_pages, {0}},
    /* answered as unknown, so that libraries fall back */
    {"clone3", 435, {0}}, {"io_uring_setup", 425, {0}}, {"io_uring_enter", 426, {-1ul}}, {"io_uring_register", 427, {-1ul}},
    {"open_tree", 428, {-1ul, 0, 1}}, {"move_mount", 429, {-1ul}}, {"fsopen", 430, {0}}, {"fsconfig", 431, {-1ul}},
    {"fsmount", 432, {-1ul}}, {"fspick", 433, {-1ul}}, {"mount_setattr", 442, {-1ul}}, {"beyond", 10000, {0}},
    {"x32", X86(0x40000000 | 39), {0}},
};

static void try_call(const char *name) {
  for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
    if (strcmp(CALLS[i].name, name) != 0) continue;
    if (CALLS[i].number == NO) return;
    const unsigned long *argument = CALLS[i].argument;
    return print_result(name, syscall(CALLS[i].number, argument[0], argument[1], argument[2], argument[3], argument[4]));
  }
  printf("%s unknown\n", name);
}

/* Makes a mount writable and takes it away, with arguments that are good: what refuses is not how the call is made. */
static void try_remount(const char *path) {
  print_result("mount", mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL));
  print_result("umount2", umount2(path, MNT_DETACH));
}

/* FAMILY,TYPE,PROTOCOL; numbers may have upper bits, which the kernel cuts. */
static void try_socket(const char *word) {
  unsigned long long number[3] = {0, SOCK_DGRAM, 0};
  char *at = (char *)(uintptr_t)word;
  for (int i = 0; i < 3; i++, at++) {
    number[i] = strtoull(at, &at, 0);
    if (*at != ',') break;
  }
  print_result(word, syscall(SYS_socket, number[0], number[1], number[2]));
}

/* Namespace flags to clone and unshare; each in a child, so that one success does not change the next attempt. */
static void try_namespace(const char *word) {
  unsigned long long flags = strtoull(word, NULL, 0);
  char what[64];
  long made = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (made == 0) _exit(0);
  snprintf(what, sizeof what, "clone:%s", word);
  print_result(what, made);
  if (made > 0) waitpid((pid_t)made, NULL, 0);
  fflush(stdout);
  if (fork() == 0) {
    snprintf(what, sizeof what, "unshare:%s", word);
    print_result(what, syscall(SYS_unshare, flags));
    _exit(0);
  }
  wait(NULL);
}

static void try_personality(const char *word) { print_result(word, syscall(SYS_personality, strtoull(word, NULL, 0)) < 0 ? -1 : 0); }

/* A request on standard input, with upper bits that the kernel cuts. */
static void try_ioctl(const char *word) {
  char byte[8] = "";
  print_result(word, syscall(SYS_ioctl, 0, strtoull(word, NULL, 0), byte));
}

#define NO_FOREIGN_CALLS "i386 absent\n"

#ifdef __x86_64__
/* A kernel without that door (ia32_emulation=0, some virtual machines) sends this signal, and a filter ends the process by another. */
static void on_missing_door(int signal) {
  (void)!write(STDOUT_FILENO, NO_FOREIGN_CALLS, strlen(NO_FOREIGN_CALLS));
  _exit(signal != SIGSEGV);
}
#endif

/* The door of 32-bit programs. */
static void call_i386(void) {
#ifdef __x86_64__
  long result;
  signal(SIGSEGV, on_missing_door);
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  printf("i386 %ld\n", result);
#else
  fputs(NO_FOREIGN_CALLS, stdout);
#endif
}

/* ---- processes ---- */

static void attack(pid_t pid) {
  char path[64];
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  print_result("ptrace", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  print_result("mem", open(path, O_RDWR));
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  print_result("descriptors", open(path, O_RDONLY | O_DIRECTORY));
  snprintf(path, sizeof path, "/proc/%d/environ", pid);
  print_result("environ", open(path, O_RDONLY));
  snprintf(path, sizeof path, "/proc/%d/root", pid);
  print_result("root", open(path, O_PATH));
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  print_result("vm", syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0));
  print_result("getfd", syscall(438, pidfd, 0, 0)); /* pidfd_getfd */
  kill(pid, SIGSTOP);
  kill(pid, SIGKILL);
  kill(pid, SIGTERM);
}

/* Everything that changes what a process may use without being able to read it. What is written is what it has already. */
static void starve(pid_t pid) {
  const unsigned long high = 1ul << 32 | (unsigned long)pid; /* the kernel cuts it */
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  struct sched_param priority = {0};
  unsigned long processors[16] = {~0ul};
  struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t rest[5]; } schedule = {sizeof schedule, 0, 0, 0, 0, {0}};
  print_result("prlimit64", syscall(SYS_prlimit64, pid, RLIMIT_CPU, &limit, NULL));
  print_result("prlimit64-high", syscall(SYS_prlimit64, high, RLIMIT_CPU, &limit, NULL));
  print_result("prlimit64-read", syscall(SYS_prlimit64, pid, RLIMIT_CPU, NULL, &limit));
  print_result("sched_setscheduler", syscall(SYS_sched_setscheduler, pid, SCHED_OTHER, &priority));
  print_result("sched_setscheduler-high", syscall(SYS_sched_setscheduler, high, SCHED_OTHER, &priority));
  print_result("sched_setparam", syscall(SYS_sched_setparam, pid, &priority));
  print_result("sched_setattr", syscall(SYS_sched_setattr, pid, &schedule, 0));
  print_result("sched_setaffinity", syscall(SYS_sched_setaffinity, pid, sizeof processors, processors));
  print_result("setpriority", syscall(SYS_setpriority, PRIO_PROCESS, pid, 0));
  print_result("setpriority-high", syscall(SYS_setpriority, PRIO_PROCESS, high, 0));
  print_result("setpriority-group", syscall(SYS_setpriority, PRIO_PGRP, pid, 0));
  print_result("setpriority-user", syscall(SYS_setpriority, PRIO_USER, geteuid(), 0));
  print_result("setpriority-own-user", syscall(SYS_setpriority, PRIO_USER, 0, 0));
  print_result("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 0));
  print_result("ioprio_set-high", syscall(SYS_ioprio_set, 1, high, 0));
  print_result("ioprio_set-group", syscall(SYS_ioprio_set, 2, pid, 0));
  print_result("ioprio_set-user", syscall(SYS_ioprio_set, 3, geteuid(), 0));
  print_result("ioprio_set-own-user", syscall(SYS_ioprio_set, 3, 0, 0));
}

/* The calls that name a process and are the kernel's to refuse, where the process may not be traced. */
static void meddle(pid_t pid) {
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), node = 0, status;
  void *page = &node;
  struct iovec one = {(void *)0x400000, 4096};
  size_t size;
  print_result("move_pages", syscall(SYS_move_pages, pid, 1, &page, &node, &status, 2 /* MPOL_MF_MOVE */));
  print_result("migrate_pages", syscall(SYS_migrate_pages, pid, 8, &(unsigned long){1}, &(unsigned long){1}));
  print_result("kcmp", syscall(SYS_kcmp, getpid(), pid, 0, 0, 0));
  print_result("process_madvise", syscall(440, pidfd, &one, 1, 20 /* MADV_COLD */, 0));
  print_result("process_mrelease", syscall(448, pidfd, 0));
  print_result("process_vm_writev", syscall(SYS_process_vm_writev, pid, &(struct iovec){&node, 4}, 1, &one, 1, 0));
  print_result("get_robust_list", syscall(SYS_get_robust_list, pid, &page, &size));
  print_result("setpgid", syscall(SYS_setpgid, pid, 0));
  print_result("setns", syscall(SYS_setns, pidfd, 0x20000 /* CLONE_NEWNS */));
}

/* Every file of the process's own directory that can be opened for writing, by its name. */
static void open_settings(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", pid);
  DIR *entries = opendir(path);
  int directory = entries ? dirfd(entries) : -1;
  for (struct dirent *entry; entries && (entry = readdir(entries));) {
    int fd = openat(directory, entry->d_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    /* Any process may open it; the kernel checks the owner at the write. */
    if (fd >= 0 && strcmp(entry->d_name, "timerslack_ns") == 0) print_result(entry->d_name, write(fd, "50000", 5));
    else if (fd >= 0) print_result(entry->d_name, fd);
    if (fd >= 0) close(fd);
  }
  print_result("end", entries ? 0 : -1);
}

static void trace_own_child(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  print_result("ptrace-child", WIFSTOPPED(status) && ptrace(PTRACE_CONT, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
                              WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : -1);
}

static _Noreturn void linger(void) {
  for (int signal = 1; signal < NSIG; signal++) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(signal, &ignore, NULL);
  }
  for (;;) pause();
}

/* Nested daemons that ignore everything they can, every second one stopped; all keep standard output open. */
static void leave_daemons(int count) {
  if (fork() != 0) return;
  setsid();
  for (int i = 1; i < count; i++) {
    pid_t child = fork();
    if (child != 0) linger();
    setsid();
    if (i % 2) {
      pid_t stopped = fork();
      if (stopped == 0) raise(SIGSTOP), linger();
    }
  }
  linger();
}

static void fork_many(int most) {
  int made = 0;
  pid_t children[4096];
  while (made < most && made < 4096 && (children[made] = fork()) > 0) made++;
  if (made < most && children[made] == 0) linger();
  printf("forks %d\n", made);
  for (int i = 0; i < made; i++) kill(children[i], SIGKILL);
}

/* After an attempt to take all that there are. */
static void count_processors(void) {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  (void)sched_setaffinity(0, sizeof all, &all);
  if (sched_getaffinity(0, sizeof all, &all) < 0) return print_result("processors", -1);
  printf("processors %d\n", CPU_COUNT(&all));
}

static void eat(long long bytes) {
  const long long page = 1 << 20;
  static char *held;
  for (long long eaten = 0; eaten < bytes; eaten += page) {
    char *more = malloc((size_t)page);
    if (!more) return print_result("eat", -1);
    memset(more, 1, (size_t)page);
    *(char **)more = held; /* kept: memory that is freed would be no load */
    held = more;
  }
  puts("eat ok");
}

static void print_descriptors(void) {
  for (int fd = 0; fd < 4096; fd++)
    if (fcntl(fd, F_GETFD) >= 0) printf("%d\n", fd);
}

static void print_arguments(char **words) {
  for (; *words; words++) {
    for (const unsigned char *at = (const unsigned char *)*words; *at; at++) printf("%02x", *at);
    putchar('\n');
  }
}

/* ---- sockets ---- */

static void connect_port(const char *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  print_result("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
}

/* A name that begins with @ is abstract; node before 22 pads such names to the whole of the address. */
static void connect_unix(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(name);
  if (length >= sizeof address.sun_path) return (void)puts("unix too-long");
  memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = 0;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int done = connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
  if (done < 0 && name[0] == '@') done = connect(fd, (struct sockaddr *)&address, sizeof address);
  print_result("unix", done);
}

static void make_in(const char *directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (chdir(directory) < 0) return print_result(directory, -1);
  print_result("fifo", mkfifo("fifo", 0600));
  strcpy(address.sun_path, "socket");
  print_result("socket", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
}

/* ---- */

static const struct {
  const char *name;
  void (*attempt)(const char *word);
} EACH[] = {
    {"stat", try_stat},     {"write-open", try_write_open}, {"create", try_create}, {"flags", print_flags},
    {"kind", print_kind},   {"plant-setuid", plant_setuid}, {"call", try_call},     {"socket", try_socket},
    {"namespace", try_namespace}, {"personality", try_personality}, {"ioctl", try_ioctl}, {"connect", connect_port},
    {"unix", connect_unix}, {"make-in", make_in}, {"remount", try_remount},
};

static int try_each(const char *name, char **words) {
  for (size_t i = 0; i < sizeof EACH / sizeof *EACH; i++) {
    if (strcmp(EACH[i].name, name) != 0) continue;
    for (; *words; words++) EACH[i].attempt(*words);
    return 1;
  }
  return 0;
}

static int try_one(const char *name, int count, char **words) {
  const char *first = count > 0 ? words[0] : "0";
  if (strcmp(name, "flood") == 0 && count == 2) flood_inodes(first, atol(words[1]));
  else if (strcmp(name, "fill") == 0 && count == 2) fill(first, atoll(words[1]));
  else if (strcmp(name, "attack") == 0) attack((pid_t)atoi(first));
  else if (strcmp(name, "starve") == 0) starve((pid_t)atoi(first));
  else if (strcmp(name, "meddle") == 0) meddle((pid_t)atoi(first));
  else if (strcmp(name, "settings") == 0) open_settings((pid_t)atoi(first));
  else if (strcmp(name, "trace-child") == 0) trace_own_child();
  else if (strcmp(name, "daemons") == 0) leave_daemons(atoi(first));
  else if (strcmp(name, "forks") == 0) fork_many(atoi(first));
  else if (strcmp(name, "processors") == 0) count_processors();
  else if (strcmp(name, "eat") == 0) eat(atoll(first));
  else if (strcmp(name, "descriptors") == 0) print_descriptors();
  else if (strcmp(name, "arguments") == 0) print_arguments(words);
  else if (strcmp(name, "i386") == 0) call_i386();
  else return 0;
  return 1;
}

int main(int argc, char **argv) {
  if (argc > 1 && (try_each(argv[1], argv + 2) || try_one(argv[1], argc - 2, argv + 2))) return 0;
  fputs("usage: probe ATTEMPT [WORD...]\n", stderr);
  return 125;
}
