/*
 * container-init [--umask MASK] [--mounts COUNT MOUNT...] [--network NET_SOCKET UID GID] SOCKET COMMAND [ARG...]: PID 1 of a container of
 * the docker backend.
 * container-init [--umask MASK] --inside SOCKET COMMAND [ARG...]: one command in a container that outlives it, for sessions.
 * container-init --held COUNT MOUNT...: ends with 0 when the mounts of the container are these. A MOUNT is five words, see tools/container-mounts.h.
 *
 * Theory of operation. A daemon reports one number from 0 to 255 for a container, so an end by a signal, a missing program
 * and an exit code look alike. This program is mounted in the container read-only and runs the command as its child. It
 * connects to the runner's socket before the command exists; the runner takes one connection, so no other process in here can speak for it,
 * and it is not dumpable, so the command, which has the same id, cannot take its descriptor. It passes signals on, reaps, and
 * when the command has ended it kills what is left and writes the status line of launch (lib/status.h). Its exit status is
 * the one that docker's init would have used. With --mounts nothing runs before the mounts were compared and reported to the runner;
 * else, without a socket, it does the same without the reports. With --network it starts as root and becomes UID and GID (tools/container-network.h).
 * With --inside it kills no process: the runner cleans up after a command in a container that continues.
 */
#include "tools/container-mounts.h"
#include "tools/container-network.h"
#include "lib/children.h"
#include "lib/fd-message.h"
#include "lib/launch-file.h"
#include "lib/programs.h"
#include "lib/report-failure.h"
#include "lib/status.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Sent by the child through a close-on-exec pipe: nothing comes when execve succeeds. */
struct failure {
  int error;
  char step[32], path[256];
};

/* ---- the command's process ---- */

static _Noreturn void report_and_exit(int pipe, int error, const char *step, const char *path) {
  struct failure failure = {.error = error};
  copy_text(failure.step, sizeof failure.step, step);
  copy_text(failure.path, sizeof failure.path, path);
  (void)!write(pipe, &failure, sizeof failure);
  _exit(127);
}

/* As a shell looks: the first file that may be executed, else the first that is there at all. Returns 0, or an errno. */
static int look_up(const char *name, char *found, size_t room) {
  const char *at = getenv("PATH");
  int error = ENOENT;
  if (strchr(name, '/')) return snprintf(found, room, "%s", name) < (int)room ? 0 : ENAMETOOLONG;
  for (at = at && *at ? at : "/usr/local/bin:/usr/bin:/bin"; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
    char path[4096];
    struct stat status;
    int length = (int)strcspn(at, ":");
    if (snprintf(path, sizeof path, "%.*s%s%s", length, at, length ? "/" : "./", name) >= (int)sizeof path) continue;
    if (stat(path, &status) < 0 || S_ISDIR(status.st_mode)) continue;
    if (access(path, X_OK) == 0) return snprintf(found, room, "%s", path), 0;
    if (error == ENOENT) snprintf(found, room, "%s", path), error = EACCES;
  }
  return error;
}

/* A terminal's keys reach its foreground group only. */
static void take_terminal(void) {
  if (setpgid(0, 0) == 0 && isatty(0)) tcsetpgrp(0, getpgrp()); /* SIGTTOU is blocked */
}

static _Noreturn void run(char **command, char **env, int pipe) {
  char path[4096] = "";
  struct stat status;
  sigset_t none;
  int error = look_up(command[0], path, sizeof path);
  if (error) report_and_exit(pipe, error, "execve", path[0] ? path : command[0]);
  take_terminal();
  for (int signal = 1; signal < _NSIG; signal++) sys_reset_signal(signal); /* KILL and STOP refuse, rightly */
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execve(path, command, env);
  error = errno;
  int is_there = stat(path, &status) == 0;
  if (error == EACCES && is_there && S_ISDIR(status.st_mode)) error = EISDIR;
  report_and_exit(pipe, error, error == ENOENT && is_there ? "interpreter" : "execve", path);
}

/* ---- PID 1 ---- */

/* Forks the command. Returns its pid, or -1 with the reason in `outcome`. */
static pid_t start(char **command, char **env, struct outcome *outcome) {
  int pipe[2];
  struct failure failure = {.error = 0};
  outcome->cause = CAUSE_SETUP;
  copy_text(outcome->step, sizeof outcome->step, "container-init: start");
  if (pipe2(pipe, O_CLOEXEC) < 0) return outcome->error = errno, -1;
  outcome->started_ns = now_ns();
  pid_t child = fork();
  if (child < 0) return outcome->error = errno, -1;
  if (child == 0) run(command, env, pipe[1]);
  close(pipe[1]);
  ssize_t got = read(pipe[0], &failure, sizeof failure);
  close(pipe[0]);
  if (got == 0) return outcome->step[0] = 0, outcome->cause = CAUSE_EXIT, child;
  outcome->cause = CAUSE_EXEC;
  outcome->error = failure.error;
  memcpy(outcome->step, failure.step, sizeof failure.step);
  memcpy(outcome->path, failure.path, sizeof failure.path);
  return -1;
}

/* Reaps what has ended. Returns 1 once that includes `child`. */
static int reap(pid_t child, int *wait_status) {
  int status, ended = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == child) *wait_status = status, ended = 1;
  return ended;
}

static int wait_for(pid_t child, const sigset_t *signals) {
  int wait_status = 0;
  while (!reap(child, &wait_status)) {
    int signal = sigwaitinfo(signals, NULL);
    if (signal > 0 && signal != SIGCHLD) kill(child, signal);
  }
  return wait_status;
}

/* The number after a word in one of two files of the container's own cgroup, of version 2 or 1; -1 where there is none. */
static long long counter(const char *newer, const char *older, const char *word) {
  FILE *file = fopen(newer, "re");
  char name[32];
  long long number = -1, found = -1;
  if (!file && !(file = fopen(older, "re"))) return -1;
  while (fscanf(file, "%31s %lld", name, &number) == 2)
    if (strcmp(name, word) == 0) found = number;
  fclose(file);
  return found;
}

static long long out_of_memory(void) {
  return counter("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "oom_kill");
}

static long long refused_processes(void) {
  return counter("/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events", "max");
}

/* The counters are the container's, and it may have served others before: `outcome` holds what they were at the beginning. */
static void measure(struct outcome *outcome) {
  struct children_usage usage = children_usage();
  outcome->cpu_us = (long long)usage.cpu_us, outcome->peak_bytes = (long long)usage.peak_bytes;
  if (outcome->oom_kills >= 0) outcome->oom_kills = out_of_memory() - outcome->oom_kills;
  if (outcome->pids_refused >= 0) outcome->pids_refused = refused_processes() - outcome->pids_refused;
}

/* Blocked, so that they wait for us; those that a fault of our own raises are left alone. */
static void hold_signals(sigset_t *signals) {
  static const int OWN[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  sigfillset(signals);
  for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++) sigdelset(signals, OWN[i]);
  sigprocmask(SIG_SETMASK, signals, NULL);
}

/* ---- words ---- */

struct words {
  char **mounts; /* COUNT times MOUNT_WORDS */
  int count, is_held, is_inside;
  mode_t umask; /* the caller's */
  struct container_network network;
  char **rest; /* SOCKET COMMAND [ARG...] */
};

/* COUNT and that many mounts. Returns what follows them, or NULL. */
static char **parse_mounts(char **argv, struct words *words) {
  uint64_t count;
  if (!argv[0] || parse_number(argv[0], 1000000, &count) < 0) return NULL;
  words->mounts = ++argv;
  words->count = (int)count;
  for (uint64_t left = count * MOUNT_WORDS; left > 0; left--, argv++)
    if (!*argv) return NULL;
  return argv;
}

/* Returns what follows them, or NULL. */
static char **parse_network(char **argv, struct words *words) {
  uint64_t uid, gid;
  if (!argv[0] || !argv[1] || !argv[2] || parse_number(argv[1], UINT32_MAX - 1, &uid) < 0 || parse_number(argv[2], UINT32_MAX - 1, &gid) < 0) return NULL;
  words->network = (struct container_network){argv[0], (uid_t)uid, (gid_t)gid};
  return argv + 3;
}

/* Octal. Returns what follows it, or NULL. */
static char **parse_umask(char **argv, struct words *words) {
  unsigned mask;
  if (!argv[0] || parse_mode(argv[0], &mask) < 0 || mask > 0777) return NULL;
  words->umask = (mode_t)mask;
  return argv + 1;
}

static int parse_words(char **argv, struct words *words) {
  char **at = argv[0] ? argv + 1 : argv;
  *words = (struct words){.umask = 022};
  if (*at && strcmp(*at, "--umask") == 0 && !(at = parse_umask(at + 1, words))) return 0;
  words->is_held = *at && strcmp(*at, "--held") == 0;
  if (words->is_held) return (at = parse_mounts(at + 1, words)) != NULL && !*at;
  if (*at && strcmp(*at, "--inside") == 0) words->is_inside = 1, at++;
  else if (*at && strcmp(*at, "--mounts") == 0 && !(at = parse_mounts(at + 1, words))) return 0;
  if (!words->is_inside && *at && strcmp(*at, "--network") == 0 && !(at = parse_network(at + 1, words))) return 0;
  words->rest = at;
  /* Elsewhere the kill at the end would reach everything of this user. */
  return at[0] && at[1] && (words->is_inside || getpid() == 1);
}

static int usage(void) {
  fputs("usage: container [--umask MASK] [--inside | --mounts COUNT MOUNT... | --network NET_SOCKET UID GID] SOCKET COMMAND [ARG...], without --inside as PID 1 of a container; or --held COUNT MOUNT...\n", stderr);
  return EXIT_SETUP;
}

/* Returns 1 when every mount is what the runner meant. */
static int are_held(const struct words *words, struct outcome *outcome) {
  const char *problem = container_mounts_problem(words->mounts, words->count, &outcome->error);
  if (!problem) return 1;
  outcome->cause = CAUSE_SETUP;
  copy_text(outcome->step, sizeof outcome->step, "container-init: mounts");
  copy_text(outcome->path, sizeof outcome->path, problem);
  return 0;
}

static int refuse(int report_fd, struct outcome *outcome) {
  outcome->ended_ns = now_ns();
  if (report_fd >= 0) status_write(report_fd, outcome);
  return EXIT_SETUP;
}

int container_init_main(int argc, char **argv) {
  struct outcome outcome = OUTCOME_UNKNOWN;
  struct words words;
  sigset_t signals;
  outcome.begun_ns = now_ns();
  if (argc < 2 || !parse_words(argv, &words)) return usage();
  if (words.is_held) return !are_held(&words, &outcome);
  int is_meant = !words.mounts || are_held(&words, &outcome); /* before our own /proc is closed to us */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return EXIT_SETUP;
  outcome.oom_kills = out_of_memory();
  outcome.pids_refused = refused_processes();
  int report_fd = socket_to(words.rest[0], SOCK_STREAM); /* -1: the runner notices that no connection came */
  if (!is_meant || (words.mounts && report_fd < 0)) return refuse(report_fd, &outcome);
  if (container_network_make(&words.network, &outcome) < 0) return refuse(report_fd, &outcome);
  hold_signals(&signals);
  umask(words.umask);
  pid_t child = start(words.rest + 1, environ, &outcome);
  if (child > 0) outcome.wait_status = wait_for(child, &signals);
  outcome.ended_ns = now_ns();
  if (!words.is_inside) outcome.killed = children_end();
  measure(&outcome);
  if (report_fd >= 0) status_write(report_fd, &outcome);
  return ending_of(&outcome).exit_status;
}
