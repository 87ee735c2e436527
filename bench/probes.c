/*
 * probes: tries actions of a hostile command where it is run. The same program is the command inside a sandbox and, outside of any, the control: a wall
 * counts only where the attempt works outside. bench/protections.mjs starts it and inspects the host afterwards.
 *
 *   probes try NAME=VALUE...     each attempt in a separate process, one line each: "NAME open" or "NAME shut"
 *   probes memory BYTES          "memory open" when they could be used all at once
 *   probes processes COUNT       "processes open" when so many could be there at once
 *   probes terminal              "terminal open" when a character could be typed into the terminal on stdin
 *   probes daemon NAME           leaves a process called NAME, in a separate session, and ends
 *   probes linger NAME           the same, but does not end
 *   probes host NAME SOCKET TOKEN KEY     what is attacked: a process, its sockets, its shared memory; prints its port
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

enum { TEXT = 4096, INHERITED = 9, PROCESSES_MAX = 4096 };

/* Nothing of a bench that was interrupted stays for longer. */
enum { LIFETIME_SECONDS = 60 };

static char **words;

static void give_up(const char *what) {
  fprintf(stderr, "probes: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* The value of NAME among the words; "" where there is none, so its attempt finds nothing. */
static const char *value(const char *name) {
  size_t length = strlen(name);
  for (char **word = words; *word; word++)
    if (strncmp(*word, name, length) == 0 && (*word)[length] == '=') return *word + length + 1;
  return "";
}

static bool says_token(int fd) {
  char text[TEXT];
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (got <= 0) return false;
  text[got] = 0;
  return strstr(text, value("token"));
}

/* ---- files ---- */

static bool read_home(void) { return says_token(open(value("home-file"), O_RDONLY)); }
static bool read_other(void) { return says_token(open(value("other-file"), O_RDONLY)); }

/* Only the host can tell whether the file is on the host: a sandbox may have a separate home. */
static bool write_home(void) { return open(value("home-new"), O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0; }
static bool write_other(void) { return open(value("other-new"), O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0; }

/* ---- processes ---- */

static bool is_called(const char *pid, const char *name) {
  char path[TEXT], text[TEXT];
  snprintf(path, sizeof path, "/proc/%s/comm", pid);
  int fd = open(path, O_RDONLY);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (got <= 0) return false;
  text[got] = 0;
  return strncmp(text, name, strlen(name)) == 0;
}

static bool see_processes(void) {
  DIR *directory = opendir("/proc");
  if (!directory) return false;
  for (struct dirent *entry; (entry = readdir(directory));)
    if (is_called(entry->d_name, value("process"))) return true;
  return false;
}

/* By number alone, as one would who cannot see it. The host looks whether it has ended. */
static bool signal_process(void) {
  int pid = atoi(value("pid"));
  return pid > 1 && kill(pid, SIGTERM) == 0;
}

/* ---- sockets and shared memory ---- */

static bool answers(int domain, const struct sockaddr *address, socklen_t length) {
  int fd = socket(domain, SOCK_STREAM, 0);
  return fd >= 0 && connect(fd, address, length) == 0 && says_token(fd);
}

static bool reach_loopback(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(value("port")))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return answers(AF_INET, (struct sockaddr *)&address, sizeof address);
}

/* @returns the length of the address; an abstract one begins with a zero. */
static socklen_t unix_address(struct sockaddr_un *address, const char *name, bool is_abstract) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  snprintf(address->sun_path + is_abstract, sizeof address->sun_path - 1, "%s", name);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name));
}

static bool reach_unix(const char *name, bool is_abstract) {
  struct sockaddr_un address;
  socklen_t length = unix_address(&address, name, is_abstract);
  return answers(AF_UNIX, (struct sockaddr *)&address, length);
}

static bool reach_abstract(void) { return reach_unix(value("process"), true); }
static bool reach_socket(void) { return reach_unix(value("socket"), false); }
static bool reach_memory(void) { return shmget(atoi(value("key")), 0, 0) >= 0; }

/* ---- the kernel ---- */

static bool make_userns(void) { return unshare(CLONE_NEWUSER) == 0; }

static bool use_bpf(void) {
  union bpf_attr attributes = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes) >= 0;
}

static bool use_perf(void) {
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_TASK_CLOCK};
  attributes.exclude_kernel = 1;
  return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0;
}

static bool use_keyring(void) { return syscall(SYS_add_key, "user", "llm-do-bench", "x", 1, -1 /* of the thread */) >= 0; }

static bool use_io_uring(void) {
  struct io_uring_params parameters = {0};
  return syscall(SYS_io_uring_setup, 1, &parameters) >= 0;
}

static bool use_userfaultfd(void) { return syscall(SYS_userfaultfd, O_CLOEXEC) >= 0; }

static bool write_sysctl(void) { return open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0; }

static bool read_addresses(void) {
  char text[TEXT];
  int fd = open("/proc/kallsyms", O_RDONLY);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (got <= 0) return false;
  text[got] = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (strtoull(line, NULL, 16)) return true;
  return false;
}

static bool read_log(void) {
  char text[TEXT];
  return klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof text) >= 0;
}

static bool read_core(void) { return open("/proc/kcore", O_RDONLY) >= 0; }

/* ---- privileges ---- */

static bool gain_by_setuid(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0; }

/* In a new mount namespace: outside nothing is mounted for others. */
static bool mount_here(void) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", ".", "tmpfs", 0, NULL) == 0;
}

static bool make_device(void) {
  if (mknod("probed-device", S_IFBLK | 0600, makedev(7, 0)) < 0) return false;
  return unlink("probed-device") == 0;
}

/* ---- what the caller has ---- */

static bool use_inherited(void) { return lseek(INHERITED, 0, SEEK_SET) == 0 && says_token(INHERITED); }

static bool read_variable(void) {
  const char *text = getenv("LLM_DO_PROBED_SECRET");
  return text && strstr(text, value("token"));
}

static const struct {
  const char *name;
  bool (*attempt)(void);
} ATTEMPTS[] = {
    {"read-home", read_home},
    {"read-other", read_other},
    {"write-home", write_home},
    {"write-other", write_other},
    {"see-processes", see_processes},
    {"loopback", reach_loopback},
    {"abstract-socket", reach_abstract},
    {"socket", reach_socket},
    {"shared-memory", reach_memory},
    {"user-namespace", make_userns},
    {"bpf", use_bpf},
    {"perf", use_perf},
    {"keyring", use_keyring},
    {"io-uring", use_io_uring},
    {"userfaultfd", use_userfaultfd},
    {"sysctl", write_sysctl},
    {"kernel-addresses", read_addresses},
    {"kernel-log", read_log},
    {"kernel-memory", read_core},
    {"setuid", gain_by_setuid},
    {"mount", mount_here},
    {"device", make_device},
    {"descriptor", use_inherited},
    {"variable", read_variable},
    {"signal", signal_process}, /* the last: what is attacked ends */
};

static void say(const char *name, bool is_open) {
  printf("%s %s\n", name, is_open ? "open" : "shut");
  fflush(stdout);
}

/* A filter may kill who tries: then it is shut. */
static bool works(bool (*attempt)(void)) {
  pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) _exit(attempt() ? 0 : 1);
  int status;
  if (waitpid(pid, &status, 0) != pid) give_up("wait");
  return status == 0;
}

static void try_all(void) {
  for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++) say(ATTEMPTS[i].name, works(ATTEMPTS[i].attempt));
}

/* ---- bounds ---- */

static void use_memory(size_t bytes) {
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) memset(memory, 1, bytes);
  say("memory", memory != MAP_FAILED);
}

static void use_processes(int count) {
  static pid_t pids[PROCESSES_MAX];
  int made = 0;
  for (; made < count && made < PROCESSES_MAX; made++) {
    pids[made] = fork();
    if (pids[made] < 0) break;
    if (pids[made] > 0) continue;
    alarm(LIFETIME_SECONDS);
    pause();
    _exit(0);
  }
  say("processes", made == count);
  for (int i = 0; i < made; i++) kill(pids[i], SIGKILL);
}

static void type_into_terminal(void) { say("terminal", ioctl(0, TIOCSTI, "\n") == 0); }

/* ---- processes that stay ---- */

static void stay(void) {
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  alarm(LIFETIME_SECONDS);
  for (;;) pause();
}

/* Twice forked, with its own session and streams: a search for children, groups or open pipes does not find it. */
static void leave_daemon(const char *name) {
  int named[2];
  char byte;
  if (pipe(named) < 0) give_up("pipe");
  pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid > 0) {
    close(named[1]);
    if (read(named[0], &byte, 1) != 0) give_up("read"); /* the end: from now on a search finds the name */
    waitpid(pid, NULL, 0);
    return;
  }
  setsid();
  pid = fork();
  if (pid != 0) _exit(pid < 0);
  prctl(PR_SET_NAME, name, 0, 0, 0);
  for (int fd = 0; fd < 256; fd++) close(fd);
  stay();
}

static volatile sig_atomic_t is_over;
static void end(int signal) {
  (void)signal;
  is_over = 1;
}

static int listen_on(int domain, const struct sockaddr *address, socklen_t length) {
  int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, address, length) < 0 || listen(fd, 8) < 0) give_up("a socket to be reached");
  return fd;
}

static void serve(struct pollfd *sockets, int count, const char *token) {
  while (!is_over) {
    if (poll(sockets, (nfds_t)count, 1000) <= 0) continue;
    for (int i = 0; i < count; i++) {
      if (!sockets[i].revents) continue;
      int fd = accept(sockets[i].fd, NULL, NULL);
      if (fd < 0) continue;
      (void)!send(fd, token, strlen(token), MSG_NOSIGNAL);
      close(fd);
    }
  }
}

static void be_host(const char *name, const char *path, const char *token, int key) {
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  alarm(LIFETIME_SECONDS);
  prctl(PR_SET_NAME, name, 0, 0, 0);
  int memory = shmget(key, TEXT, IPC_CREAT | IPC_EXCL | 0600);
  if (memory < 0) give_up("shared memory");
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof loopback;
  struct sockaddr_un abstract, named;
  socklen_t abstract_length = unix_address(&abstract, name, true), named_length = unix_address(&named, path, false);
  struct pollfd sockets[] = {
      {.fd = listen_on(AF_INET, (struct sockaddr *)&loopback, sizeof loopback), .events = POLLIN},
      {.fd = listen_on(AF_UNIX, (struct sockaddr *)&abstract, abstract_length), .events = POLLIN},
      {.fd = listen_on(AF_UNIX, (struct sockaddr *)&named, named_length), .events = POLLIN},
  };
  if (getsockname(sockets[0].fd, (struct sockaddr *)&loopback, &length) < 0) give_up("getsockname");
  printf("%d\n", ntohs(loopback.sin_port));
  fflush(stdout);
  serve(sockets, 3, token);
  shmctl(memory, IPC_RMID, NULL);
  unlink(path);
}

int main(int argc, char **argv) {
  const char *verb = argc > 1 ? argv[1] : "";
  words = argv + (argc > 1 ? 2 : 1);
  if (strcmp(verb, "try") == 0) try_all();
  else if (strcmp(verb, "memory") == 0 && argc == 3) use_memory(strtoul(argv[2], NULL, 10));
  else if (strcmp(verb, "processes") == 0 && argc == 3) use_processes(atoi(argv[2]));
  else if (strcmp(verb, "terminal") == 0) type_into_terminal();
  else if (strcmp(verb, "daemon") == 0 && argc == 3) leave_daemon(argv[2]);
  else if (strcmp(verb, "linger") == 0 && argc == 3) {
    leave_daemon(argv[2]);
    prctl(PR_SET_NAME, argv[2], 0, 0, 0);
    stay();
  } else if (strcmp(verb, "host") == 0 && argc == 6) be_host(argv[2], argv[3], argv[4], atoi(argv[5]));
  else {
    errno = EINVAL;
    give_up("usage: see the head of probes.c");
  }
  return 0;
}
