/*
 * init: PID 1 of the sandbox. Executed by the engine inside the finished namespaces; the only program in there that is ours.
 *
 * Theory of operation. It is not dumpable from its first instruction, so the command, which has the same id, can neither
 * trace it nor look at its descriptors. It reads the launch file and the command (argv, environment) from memfds, because
 * its own argv and environment can be seen from inside. With the capabilities that the engine left it finishes what only the
 * inside can do: the bounding set, and where bwrap was the engine, the covers of /proc. Then it gives up everything, starts the
 * command with descriptors 0-2 only, and reaps. One report goes to launch when the command has started and one when it has
 * ended; requests to send signals come back. When launch is gone, the control socket says so and init ends, and with PID 1 the
 * kernel ends everything else in here.
 *
 * In a warm sandbox the command's process is there before its command: it has done what does not depend on one, gets it from
 * launch by a separate socket, does the rest, and starts when launch says so. No other process in here is woken for that: that it
 * has started stands in a pipe which init reads at the end.
 *
 * A blank sandbox (lib/any-directory.h) has no zones until a command comes, and init keeps the right to mount for them alone: it takes
 * them from the stager, covers what launch has found in them, gives up the right, and says so. No command starts before.
 *
 * A sandbox that serves (`serve` in its launch file) runs other commands, too, which launch hands over. Each has an attendant
 * (sandbox/exec-in.h), a process that is forked here, behind the same walls.
 */
#include "lib/covers.h"
#include "lib/arena.h"
#include "lib/children.h"
#include "lib/init-protocol.h"
#include "lib/pages.h"
#include "lib/report-failure.h"
#include "sandbox/command.h"
#include "sandbox/cover.h"
#include "sandbox/exec-in.h"
#include "sandbox/seccomp-eval.h"
#include "sandbox/confine.h"
#include "sandbox/network.h"
#include "sandbox/observe.h"
#include "lib/syscalls.h"
#include "lib/launch-file.h"
#include "lib/fd-message.h"
#include "sandbox/proc-mask.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

/* ---- what launch wants run ---- */

static char *take_word(char **at, const char *end) {
  char *word = *at, *nul = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;
  if (!nul) fail_with(EINVAL, "init: command block", "");
  *at = nul + 1;
  return word;
}

static char **take_words(char **at, const char *end, uint64_t count) {
  char **words = calloc(count + 1, sizeof *words);
  if (!words) fail("init: memory", "");
  for (uint64_t i = 0; i < count; i++) words[i] = take_word(at, end);
  return words;
}

static struct command parse_command(char *at, size_t size) {
  const char *end = at + size;
  uint64_t arguments, variables, mask;
  if (parse_number(take_word(&at, end), size, &arguments) < 0 || parse_number(take_word(&at, end), size, &variables) < 0 ||
      parse_number(take_word(&at, end), 0777, &mask) < 0)
    fail_with(EINVAL, "init: command block", "");
  struct command command = {.umask = (mode_t)mask};
  command.argv = take_words(&at, end, arguments);
  command.env = take_words(&at, end, variables);
  if (at < end) command.directory = take_word(&at, end);
  return command;
}

static struct command read_command(int fd) {
  size_t size;
  char *bytes = read_all(fd, 64u << 20, &size);
  if (!bytes) fail("init: read command", "");
  close(fd);
  return parse_command(bytes, size);
}

/* A warm sandbox: all walls stand, and the first client brings the command. */
static void request_command(int waiting, int names) {
  struct report ready = {.kind = REPORT_READY, .at_ns = now_ns(), .has_names = names >= 0};
  int with[] = {open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC), open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), waiting, names};
  if (with[0] < 0 || with[1] < 0) fail("init: open namespace", "/proc/self/ns");
  if (report_send(INIT_CONTROL, &ready, with, READY_DESCRIPTORS + (names >= 0)) < 0) _exit(125);
  close(with[0]), close(with[1]);
}

struct late {
  struct command command;
  int gate; /* -1 without */
};

/* Returns the size of the block. */
static size_t receive(int waiting, struct handover *handover, int *fds) {
  int count;
  ssize_t got = message_receive(waiting, handover, sizeof *handover, MSG_TRUNC, fds, &count);
  if (got <= 0) _exit(125); /* launch is gone */
  size_t size = (size_t)got, head = offsetof(struct handover, block);
  if (size < head || size > sizeof *handover || count != 3 + !!handover->is_long + !!handover->has_gate)
    fail_with(EINVAL, "init: handover", "");
  return size - head;
}

static struct late wait_for_command(int waiting) {
  static struct handover handover;
  int fds[MESSAGE_DESCRIPTORS_MAX], *next = fds + 3;
  use_page(&handover);
  size_t size = receive(waiting, &handover, fds);
  for (int i = 0; i < 3; i++) {
    if (dup3(fds[i], INIT_STDIN + i, O_CLOEXEC) < 0) fail("init: dup3", "");
    close(fds[i]);
  }
  struct command command = handover.is_long ? read_command(*next++) : parse_command(handover.block, size);
  if (!command.argv[0]) fail_with(EINVAL, "init: command block", "");
  return (struct late){command, handover.has_gate ? *next : -1};
}

static struct launchfile read_launch_file(void) {
  struct launchfile file;
  const char *problem = launchfile_read(INIT_LAUNCH_FILE, &file);
  if (problem) fail("init: launch file", problem);
  close(INIT_LAUNCH_FILE);
  return file;
}

static int is_on(const struct launchfile *file, enum verb verb) {
  struct entry entry;
  return launchfile_find(file, verb, &entry) && strcmp(entry.word[0], "on") == 0;
}

/* By the engine unshare, before the tree was there. */
static int has_covered_proc(const struct launchfile *file) {
  struct entry engine;
  return launchfile_find(file, V_ENGINE, &engine) && strcmp(engine.word[0], "unshare") == 0;
}

/* So has its network been made. */
static void make_network(const struct launchfile *file) {
  network_make(file, INIT_NETWORK);
  network_await_helper(INIT_NETWORK);
}

/* The socket for names of a sandbox without network; -1 without. The engine unshare has left it behind. */
static int take_names(const struct launchfile *file) {
  if (!network_is_none(file)) return -1;
  if (!has_covered_proc(file)) return network_open_names();
  return fcntl(INIT_NETWORK, F_SETFD, FD_CLOEXEC) < 0 ? -1 : INIT_NETWORK;
}

/* ---- the command's process ---- */

/* The C library's way, without a call where there is one: behind the filter, which may refuse that of now_ns. */
static uint64_t now_behind_filter(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sent by the child through a close-on-exec pipe: nothing comes when execve succeeds. */
static _Noreturn void report_and_exit(int pipe, uint32_t kind, const char *step, const char *path) {
  struct report report = {.kind = kind, .error = errno, .at_ns = now_behind_filter()};
  copy_text(report.step, sizeof report.step, step);
  copy_text(report.path, sizeof report.path, path);
  (void)!write(pipe, &report, sizeof report);
  _exit(127);
}

/* May this user start one more process under that limit? The kernel counts those of other containers, too, which /proc does not list. */
static int has_room(rlim_t most, rlim_t hard) {
  const struct rlimit limit = {most < hard ? most : hard, hard};
  pid_t child = setrlimit(RLIMIT_NPROC, &limit) < 0 ? -1 : fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, NULL, 0) == child;
}

#define COUNTED_MAX (1u << 22) /* PID_MAX_LIMIT of linux/threads.h */

/* Processes and threads that the user has at this moment in addition to init and this one. 0 where no count allows another one. */
static rlim_t count_others(rlim_t hard) {
  rlim_t full = 0, free = 1;
  while (!has_room(free, hard) && free < COUNTED_MAX) full = free, free *= 2;
  while (free < COUNTED_MAX && free - full > 1) {
    rlim_t middle = full + (free - full) / 2;
    *(has_room(middle, hard) ? &free : &full) = middle;
  }
  return free < COUNTED_MAX && free > 2 + NAMESPACE_PROCESSES ? free - 2 - NAMESPACE_PROCESSES : 0;
}

static void set_limits(const struct launchfile *file, int pipe) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(file, V_RLIMIT, &position, &entry)) {
    uint64_t resource, soft, hard;
    struct rlimit now, limit;
    errno = EINVAL;
    if (parse_number(entry.word[0], RLIM_NLIMITS - 1, &resource) < 0 || parse_number(entry.word[1], UINT64_MAX, &soft) < 0 ||
        parse_number(entry.word[2], UINT64_MAX, &hard) < 0 || getrlimit((int)resource, &now) < 0)
      report_and_exit(pipe, REPORT_FAILED, "init: rlimit", entry.word[0]);
    /* In its user namespace the kernel counts the command alone. */
    rlim_t others = resource == RLIMIT_NPROC && !launchfile_has_namespaces(file) ? count_others(now.rlim_max) : 0;
    soft += others, hard += others;
    /* Never above what the host allows: raising would need a capability. */
    limit.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    if (setrlimit((int)resource, &limit) < 0) report_and_exit(pipe, REPORT_FAILED, "init: setrlimit", entry.word[0]);
  }
}

/* Launch and its stager have reset all dispositions (runner/launch.c, runner/start.c); what we block is ours. */
static void unblock_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void take_streams(int slave, int pipe) {
  for (int i = 0; i < 3; i++)
    if (dup2(slave < 0 ? INIT_STDIN + i : slave, i) < 0) report_and_exit(pipe, REPORT_FAILED, "init: dup2", "");
  if (slave >= 0 && ioctl(0, TIOCSCTTY, 0) < 0) report_and_exit(pipe, REPORT_FAILED, "init: terminal", "");
}

static const char *search_path(char **env) {
  for (; *env; env++)
    if (strncmp(*env, "PATH=", 5) == 0) return *env + 5;
  return "/usr/local/bin:/usr/bin:/bin";
}

static int is_directory(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* execve says ENOENT also for a missing interpreter, and EACCES also for a directory; the caller must learn which. */
static _Noreturn void no_exec(int pipe, const char *path) {
  int error = errno;
  struct stat status;
  const char *step = error == ENOENT && stat(path, &status) == 0 ? "interpreter" : "execve";
  errno = error == EACCES && is_directory(path) ? EISDIR : error;
  report_and_exit(pipe, REPORT_NO_EXEC, step, path);
}

/* The file `name` in the first directory of a search path. 0 where that is none, or the whole is too long. */
static int put_candidate(char *path, size_t room, const char *directory, const char *name) {
  size_t length = strcspn(directory, ":");
  if (length == 0 || length + strlen(name) + 2 > room) return 0;
  memcpy(path, directory, length);
  path[length] = '/';
  copy_text(path + length + 1, room - length - 1, name);
  return 1;
}

static _Noreturn void search_and_exec(const struct command *command, int pipe) {
  const char *name = command->argv[0], *denied = NULL;
  char path[4096];
  /* An empty word names no file, whatever the directories of PATH answer. */
  for (const char *at = *name ? search_path(command->env) : NULL; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
    struct stat status;
    if (!put_candidate(path, sizeof path, at, name)) continue;
    if (stat(path, &status) < 0 && (errno == ENOENT || errno == ENOTDIR)) continue; /* a third of what execve takes to say so */
    execve(path, command->argv, command->env);
    if (errno == EACCES && is_directory(path)) continue; /* as a shell does: a directory is skipped */
    if (errno == EACCES) denied = at;
    else if ((errno != ENOENT && errno != ENOTDIR) || stat(path, &status) == 0) no_exec(pipe, path);
  }
  if (denied) put_candidate(path, sizeof path, denied, name);
  errno = denied ? EACCES : ENOENT;
  report_and_exit(pipe, REPORT_NO_EXEC, "execve", denied ? path : name);
}

/* The command's process: where it reports a failure, and what was found out for it before there was a command. */
struct child {
  int pipe, slave;
  int waiting; /* where its command comes from, -1 = it is known */
  int gate;    /* -1 without */
  const int *state; /* of a command with a state: STATE_FDS descriptors (sandbox/kept-state.h); NULL without */
  struct sock_fprog filter;
};

/* All that is left to do between the filter and a command that comes late. */
static int lets_through_the_rest(const struct sock_fprog *filter) {
  static const int calls[] = {SYS_recvmsg, SYS_sendto, SYS_read,   SYS_write, SYS_mmap,  SYS_munmap,      SYS_brk,
                              SYS_close,   SYS_dup3,   SYS_chdir, SYS_close_range, SYS_umask, SYS_clock_gettime, SYS_exit_group,
#ifdef SYS_dup2
                              SYS_dup2,
#endif
  };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!filter_lets_through(filter, calls[i])) return 0;
  return filter_lets_through_with(filter, SYS_prlimit64, 0); /* our own limits: pid 0 */
}

/* Does everything that does not depend on the command, maybe long before it comes. The filter takes longest. */
static void settle(const struct launchfile *file, struct child *child) {
  if (setsid() < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: setsid", "");
  unblock_signals();
  if (processors_hold(file) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: seccomp", "");
  if (child->waiting < 0 || !lets_through_the_rest(&child->filter)) return;
  if (seccomp_install(&child->filter) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: seccomp", "");
  child->filter.len = 0;
}

/* Moves a descriptor to that place. Each has been made after those that are moved before it, so it is not in their places. */
static void move(int *fd, int to, int pipe) {
  if (*fd >= 0 && *fd != to && dup3(*fd, to, O_CLOEXEC) < 0) report_and_exit(pipe, REPORT_FAILED, "init: dup3", "");
  if (*fd >= 0) *fd = to;
}

/* They stay open for a shell. */
static void keep_state(const struct child *child) {
  for (int i = 0; i < STATE_FDS; i++)
    if (child->state[i] >= 0 && dup2(child->state[i], STATE_FD_OUT + i) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: dup2", "");
  for (int i = 0; i < STATE_FDS; i++)
    if (child->state[i] < 0) (void)close(STATE_FD_OUT + i);
}

/* Behind the streams nothing but these stays open, until execve. */
static void keep_descriptors(struct child *child) {
  unsigned end = child->state ? STATE_FD_OUT - 1 : ~0u;
  if (child->state) keep_state(child);
  move(&child->pipe, 3, child->pipe);
  move(&child->waiting, 4, child->pipe);
  move(&child->gate, 5, child->pipe);
  if (child->state && sys_close_range(STATE_FD_OUT + STATE_FDS, ~0u) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: close_range", "");
  if (sys_close_range(child->gate >= 0 ? 6 : child->waiting >= 0 ? 5 : 4, end) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: close_range", "");
}

static void enter_directory(const struct launchfile *file, const struct command *command, int pipe) {
  struct entry workdir;
  if (launchfile_find(file, V_WORKDIR, &workdir) && chdir(workdir.word[0]) < 0) report_and_exit(pipe, REPORT_FAILED, "init: chdir", workdir.word[0]);
  if (command->directory && chdir(command->directory) < 0) report_and_exit(pipe, REPORT_FAILED, "init: chdir", command->directory);
}

/* The note sends no wake-up. It cannot be taken back: a reader that finds it knows that the command may have run. */
static void wait_for_start(const struct launchfile *file, const struct command *command, const struct child *child) {
  char byte;
  uint64_t opened;
  if (read(child->waiting, &byte, 1) != 1) _exit(125); /* launch is gone, or wants no command any more */
  if (launchfile_has_slots(file)) enter_directory(file, command, child->pipe); /* by now it is mounted */
  if (child->gate >= 0 && read(child->gate, &opened, sizeof opened) != sizeof opened) _exit(125);
  struct report started = {.kind = REPORT_STARTED, .at_ns = now_ns()};
  if (write(child->pipe, &started, sizeof started) != sizeof started) _exit(125);
}

/* Calls are observed from here on, which are the command's but for its execve. Only launch has the listener. */
static void let_observe(const struct launchfile *file, int pipe) {
  struct entry observe;
  struct report report = {.kind = REPORT_OBSERVED, .at_ns = now_ns()};
  if (!launchfile_find(file, V_OBSERVE, &observe)) return;
  int listener = observe_calls(strcmp(observe.word[0], "all") == 0);
  if (listener < 0 || report_send(INIT_CONTROL, &report, &listener, 1) < 0) report_and_exit(pipe, REPORT_FAILED, "init: observe", "");
  close(listener);
}

static _Noreturn void run(const struct launchfile *file, const struct command *command, struct child *child) {
  take_streams(child->slave, child->pipe);
  if (!launchfile_has_slots(file)) enter_directory(file, command, child->pipe);
  umask(command->umask);
  if (!launchfile_has_namespaces(file) && syscall(SYS_landlock_restrict_self, INIT_NETWORK, 0) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: landlock", "");
  let_observe(file, child->pipe);
  keep_descriptors(child);
  set_limits(file, child->pipe);
  if (child->waiting >= 0) wait_for_start(file, command, child);
  if (seccomp_install(&child->filter) < 0) report_and_exit(child->pipe, REPORT_FAILED, "init: seccomp", "");
  if (strchr(command->argv[0], '/')) {
    execve(command->argv[0], command->argv, command->env);
    no_exec(child->pipe, command->argv[0]);
  }
  search_and_exec(command, child->pipe);
}

/* ---- PID 1 ---- */

/* Where we are not PID 1, with which the kernel ends everything, but our signals reach no other process than this sandbox's
 * (sandbox/host-root.h). */
static int shares_host;

static _Noreturn void leave(void) {
  if (shares_host) kill(-1, SIGKILL);
  _exit(125);
}

static void send_report(struct report *report, const int *with, int count) {
  if (!report->at_ns) report->at_ns = now_ns();
  if (report_send(INIT_CONTROL, report, with, count) < 0) leave(); /* launch is gone */
}

static void report_start(int master, int names) {
  struct report report = {.kind = REPORT_STARTED, .has_names = names >= 0};
  int with[2], count = 0;
  if (master >= 0) with[count++] = master;
  if (names >= 0) with[count++] = names;
  send_report(&report, with, count);
}

struct started {
  pid_t pid;
  int notes; /* what it has written to its pipe */
  int is_late;
};

/* A socket for the command's process, where its command is still to come; the far end is launch's. */
static int open_waiting(struct child *child) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) fail("init: socketpair", "");
  child->waiting = ends[0];
  return ends[1];
}

/* Before all that init still has to mount: its rules hold for that, too. */
static void confine_child(const struct launchfile *file) {
  struct confinement all = confine_prepare(file, 1);
  confine_enter(&all);
}

/* Forks the command, or the process that waits for one. */
static struct started start(const struct launchfile *file, const struct command *known, int names) {
  int pipe[2], master = -1, is_late = !known->argv[0], far = -1;
  struct child own = {.slave = -1, .waiting = -1, .gate = -1};
  if (seccomp_read(file, &own.filter) < 0) fail("init: seccomp", "");
  if (pipe2(pipe, O_CLOEXEC) < 0) fail("init: pipe", "");
  own.pipe = pipe[1];
  if (is_late) far = open_waiting(&own);
  if (is_on(file, V_TERMINAL)) terminal_open(&master, &own.slave, INIT_STDOUT);
  if (!is_late) report_start(master, names);
  pid_t child = fork();
  if (child < 0) fail("init: fork", "");
  if (child == 0) {
    if (is_late) close(far); /* held, it would hide that launch is gone */
    if (launchfile_has_slots(file)) close(INIT_ZONES), confine_child(file);
    settle(file, &own);
    struct late late = is_late ? wait_for_command(own.waiting) : (struct late){*known, -1};
    own.gate = late.gate;
    run(file, &late.command, &own);
  }
  if (is_late) request_command(far, names), close(far), close(own.waiting);
  if (names >= 0) close(names); /* launch has it */
  close(own.pipe);
  if (master >= 0) close(master), close(own.slave);
  /* The command's streams end with the command, not with us. */
  for (int i = 0; i < 3; i++) close(INIT_STDIN + i), close(i);
  return (struct started){child, pipe[0], is_late};
}

/* Ends the sandbox where the process that has ended was no command: it has left word in the pipe, or was killed while it waited.
 * Returns when a command that came late began. */
static uint64_t require_start(const struct started *child) {
  struct report note, started = {.kind = 0}, failure = {.kind = 0};
  while (read(child->notes, &note, sizeof note) == sizeof note) *(note.kind == REPORT_STARTED ? &started : &failure) = note;
  close(child->notes);
  if (child->is_late && !started.kind) failure.kind = REPORT_NOT_STARTED;
  if (!failure.kind) return started.at_ns;
  send_report(&failure, NULL, 0);
  _exit(125);
}

/* ---- other commands ---- */

/* By an attendant: everything that a first command gets, in the same order. */
static struct attended start_other(const struct launchfile *file, const struct command *command, int with_terminal, struct kept_state state) {
  int pipe[2], master = -1;
  struct child own = {.slave = -1, .waiting = -1, .gate = -1, .state = state.is_shell ? state.places : NULL};
  if (seccomp_read(file, &own.filter) < 0) fail("init: seccomp", "");
  if (pipe2(pipe, O_CLOEXEC) < 0) fail("init: pipe", "");
  own.pipe = pipe[1];
  if (with_terminal) terminal_open(&master, &own.slave, INIT_STDOUT);
  pid_t child = fork();
  if (child < 0) fail("init: fork", "");
  if (child == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) report_and_exit(own.pipe, REPORT_FAILED, "init: prctl", "");
    settle(file, &own);
    run(file, command, &own);
  }
  close(own.pipe);
  if (own.slave >= 0) close(own.slave);
  for (int i = 0; i < STATE_FDS; i++) (void)close(state.places[i]); /* EBADF without */
  return (struct attended){child, pipe[0], master, launchfile_has_filter(file), state};
}

static _Noreturn void attend(const struct launchfile *file, const struct request *request, const int *given) {
  int session = exec_in_take(given);
  struct command command = read_command(INIT_COMMAND);
  if (!command.argv[0]) fail_with(EINVAL, "init: command block", "");
  struct kept_state state = KEPT_STATE_NONE;
  if (request->state) kept_state_apply(&command, request->own, &state);
  struct attended attended = start_other(file, &command, request->exec_in == EXEC_IN_TERMINAL, state);
  for (int i = 0; i < 3; i++) close(INIT_STDIN + i);
  exec_in_wait(session, &attended);
}

/* Live ones. Once an attendant is killed, its processes look like those of the first command. */
static pid_t *attendants;
static size_t attendant_count;

static int forget_attendant(pid_t pid) {
  for (size_t i = 0; i < attendant_count; i++)
    if (attendants[i] == pid) return attendants[i] = attendants[--attendant_count], 1;
  return 0;
}

/* Where no process can be forked the other side sees the end of its socket. */
static void exec_in(const struct launchfile *file, const struct request *request, const int *fds, int count) {
  struct entry serve;
  if (count != EXEC_IN_DESCRIPTORS || !launchfile_find(file, V_SERVE, &serve)) return;
  if (request->state && kept_state_take(request->state == EXEC_IN_RESETS) < 0) return;
  pid_t attendant = fork();
  if (attendant == 0) attend(file, request, fds);
  if (attendant > 0 && append(attendants, attendant_count, &attendant) < 0) leave();
}

static void obey(const struct launchfile *file, pid_t child) {
  struct request request;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(INIT_CONTROL, &request, sizeof request, 0, fds, &count);
  if (got != sizeof request) leave(); /* launch is gone */
  if (request.exec_in) exec_in(file, &request, fds, count);
  else kill(request.everyone ? -1 : child, request.signal);
  for (int i = 0; i < count; i++) close(fds[i]);
}

/* Reaps what has ended. Returns 1 once that includes `child`. A command that kills its attendant ends the sandbox, as one does that kills the
 * first command: nothing it started may outlive it. */
static int reap(pid_t child, int *wait_status) {
  int status, ended = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == child) *wait_status = status, ended = 1;
    else if (forget_attendant(pid) && WIFSIGNALED(status)) leave();
  }
  return ended;
}

/* For a sandbox that serves: the command's pipe is closed by its execve, and empty; or it says why there was none. */
static void report_executed(struct pollfd *notes) {
  struct report report = {.kind = REPORT_EXECUTED};
  if (!(notes->revents & POLLIN)) send_report(&report, NULL, 0);
  notes->fd = -1;
}

static int wait_for(const struct launchfile *file, const struct started *child, int signals) {
  struct entry serve;
  int serves = launchfile_find(file, V_SERVE, &serve);
  struct pollfd watched[] = {{signals, POLLIN, 0}, {INIT_CONTROL, POLLIN, 0}, {serves ? child->notes : -1, POLLIN, 0}};
  struct signalfd_siginfo info;
  int wait_status = 0;
  while (!reap(child->pid, &wait_status)) {
    if (poll(watched, 3, -1) < 0 && errno != EINTR) leave(); /* a report of a failure would say that the command never ran */
    if (watched[1].revents) obey(file, child->pid);
    if (watched[0].revents) (void)!read(signals, &info, sizeof info); /* only wakes us; reap() asks the kernel */
    if (watched[2].revents) report_executed(&watched[2]);
  }
  return wait_status;
}

/* Less than a program's buffer is left, in a small one less than a sixteenth, or no inode. */
#define ROOM_LEAST (64 << 10)

static int is_full(const char *directory) {
  struct statfs status;
  if (statfs(directory, &status) < 0) return 0;
  uint64_t block = (uint64_t)status.f_bsize, part = (uint64_t)status.f_blocks * block / 16;
  uint64_t least = part < ROOM_LEAST ? part : ROOM_LEAST;
  return status.f_bfree == 0 || (uint64_t)status.f_bfree * block < least || status.f_ffree == 0;
}

/* Before the rest is killed: what a process had open gives its room back. */
static uint32_t full_scratch(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  uint32_t full = 0;
  for (int bit = 0; bit < FULL_MAX && launchfile_next_of(file, V_TMPFS, &position, &entry); bit++)
    full |= (uint32_t)is_full(entry.word[0]) << bit;
  return full;
}

static void report_end(const struct launchfile *file, int wait_status, uint64_t started_ns) {
  struct report report = {.kind = REPORT_ENDED, .at_ns = now_ns(), .wait_status = wait_status, .started_ns = started_ns};
  if (wait_status != 0) report.full = full_scratch(file);
  report.killed = children_end();
  struct children_usage usage = children_usage();
  report.cpu_us = usage.cpu_us, report.peak_bytes = usage.peak_bytes;
  send_report(&report, NULL, 0);
}

static int watch_children(void) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  struct sigaction standard = {.sa_handler = SIG_DFL};
  int signals = -1;
  if (sigaction(SIGCHLD, &standard, NULL) == 0 && sigprocmask(SIG_BLOCK, &children, NULL) == 0)
    signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("init: signalfd", "");
  return signals;
}

/* Returns where names are asked for, or -1. */
static int finish_walls(const struct launchfile *file) {
  if (!has_covered_proc(file)) proc_cover(file), proc_show(file);
  if (!has_covered_proc(file) && network_is_restricted(file)) make_network(file);
  int names = take_names(file);
  if (names < 0) (void)close(INIT_NETWORK); /* of a restricted network; EBADF without */
  if (!launchfile_has_slots(file)) give_up_privileges(file);
  return names;
}

/* ---- a blank sandbox ---- */

static void mount_zone(int root, int tree, const struct entry *zone, const struct guard *covers) {
  const char *target = zone->word[1];
  int point = sys_openat2(root, target + 1, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH);
  if (point < 0 || sys_move_mount(tree, point) < 0) fail("init: mount zone", target);
  for (size_t i = 0; i < covers->zones; i++)
    if (strcmp(covers->zone[i].target, target) == 0) cover_zone(root, tree, &covers->zone[i], strcmp(zone->word[2], "ro") != 0);
  close(point), close(tree);
}

/* All that is left of our rights ends here. */
static void take_zones(const struct launchfile *file, const struct confinement *confinement) {
  struct report mounted = {.kind = REPORT_MOUNTED};
  struct guard covers;
  struct entry entry;
  size_t position = 0;
  int trees[MESSAGE_DESCRIPTORS_MAX], count, next = 0, root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  char byte;
  guard_clear(&covers);
  if (root < 0) fail("init: open", "/");
  if (message_receive(INIT_ZONES, &byte, 1, 0, trees, &count) != 1) _exit(125); /* no command will come; a stager that has failed has said why */
  close(INIT_ZONES);
  if (covers_are_sent(file) && covers_receive(INIT_CONTROL, &covers) < 0) _exit(125); /* as above */
  while (launchfile_next_of(file, V_ZONE, &position, &entry)) {
    if (!launchfile_is_blank(&entry)) continue;
    if (next == count) fail_with(EINVAL, "init: zones", entry.word[1]);
    mount_zone(root, trees[next++], &entry, &covers);
  }
  close(root);
  confine_enter(confinement);
  send_report(&mounted, NULL, 0);
}

/* Its signals must reach the process of the command, which is under other rules. */
static struct confinement prepare_blank(const struct launchfile *file) {
  struct confinement own = confine_prepare(file, 0);
  drop_bounding_set();
  return own;
}

/* Without namespaces: gives this process two properties of a PID 1. Orphans come to it, and its signals stay in the sandbox. */
static void share_host(void) {
  if (fcntl(INIT_NETWORK, F_SETFD, FD_CLOEXEC) < 0) fail("init: missing descriptor", "");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) fail("init: subreaper", "");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("init: no_new_privs", "");
  drop_capabilities();
  scope_signals();
  shares_host = 1;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--probe") == 0) return 0; /* the command of an empty sandbox: llm-do doctor */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return 125;
  fail_through(INIT_CONTROL);
  for (int fd = INIT_LAUNCH_FILE; fd <= INIT_STDERR; fd++)
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) fail("init: missing descriptor", "");
  struct launchfile file = read_launch_file();
  int is_blank = launchfile_has_slots(&file);
  if (sys_close_range(is_blank ? INIT_ZONES + 1 : INIT_ZONES, ~0u) < 0) fail("init: close_range", "");
  if (is_blank && fcntl(INIT_ZONES, F_SETFD, FD_CLOEXEC) < 0) fail("init: missing descriptor", "");
  struct command command = read_command(INIT_COMMAND);
  int signals = watch_children();
  int names = launchfile_has_namespaces(&file) ? finish_walls(&file) : (share_host(), -1);
  struct confinement own = is_blank ? prepare_blank(&file) : (struct confinement){-1};
  struct started child = start(&file, &command, names);
  if (is_blank) take_zones(&file, &own);
  int wait_status = wait_for(&file, &child, signals);
  report_end(&file, wait_status, require_start(&child));
  sched_yield(); /* launch may be waiting for this processor, and our own end takes long */
  return 0;
}
