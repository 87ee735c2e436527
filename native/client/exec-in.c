/*
 * exec-in: another command in a sandbox that lives and serves.
 *
 *   llm-do exec --in NAME [OPTION...] [--] COMMAND [ARG...]          by the client, without Node
 *   exec-in DIRECTORY PARENT [OPTION...] [--] COMMAND [ARG...]       by Node, which has found the sandbox
 *
 *   --tty                    a terminal of the sandbox's, connected with our streams
 *   --env NAME[=VALUE]       a variable in addition to those of the run; without VALUE that of our own environment
 *   --workdir DIR            absolute, inside
 *   --json[=FORM]            captures what the command prints, and writes a result
 *   --report                 of Node only: writes STATE_* and launch's line for the end to descriptor 3, and nothing to stderr
 *   --keep-state[=reset]     with the directory, variables and functions of the last such command; reset: without
 *   --timeout TIME           ends the command and all that it has started: 250ms, 30s, 5m or 1h
 *
 * The sandbox is asked in DIRECTORY (lib/exec-in-socket.h). PARENT is the process that has started us, with which we end. The command gets our
 * descriptors 0-2 and of our environment TERM. Its end is reported like that of a run (client/exec-in-result.h).
 */
#include "client/exec-in-result.h"
#include "client/exec-in-words.h"
#include "lib/exec-in-socket.h"
#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/passed-signals.h"
#include "lib/programs.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "runner/stream-check.h"
#include "runner/stream-files.h"
#include "runner/streams.h"
#include "runner/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int complain(int status, const char *what, const char *why) {
  fprintf(stderr, "llm-do: %s: %s\n", what, why);
  return status;
}

/* ---- the request ---- */

/* Returns a socket that the sandbox of `directory` reads, or -1 with errno. */
static int open_door(int directory) {
  int door = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = socket_address(directory, EXEC_IN_SOCKET);
  if (door < 0 || connect(door, (struct sockaddr *)&address, sizeof address) == 0) return door;
  return close_with(door, -1);
}

/* Returns our end of the socket to the attendant, or -1 with errno. */
static int ask(int door, int block, const struct exec_in_words *words, const int *streams) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  struct request request = {.exec_in = words->has_terminal ? EXEC_IN_TERMINAL : EXEC_IN_PLAIN, .state = words->state};
  int sent = message_send(door, &request, sizeof request, (int[EXEC_IN_DESCRIPTORS]){streams[0], streams[1], streams[2], block, ends[1]}, EXEC_IN_DESCRIPTORS);
  close(ends[1]), close(block), close(door);
  return sent < 0 ? -1 : ends[0];
}

/* ---- until its end ---- */

struct entered {
  struct source session, signals, output[CAPTURE_POLLS];
  struct outcome outcome;
  unsigned state; /* STATE_* */
  int is_over;
  uint64_t end_at; /* of its time, 0 = none */
  sigset_t before; /* the caller's signal mask */
  struct terminal terminal;
  struct stream_files files;
  struct capture capture;
};

/* A deadline or a signal of the caller has come first. */
static void note_cause(struct entered *entered, enum cause cause) {
  if (entered->outcome.cause == CAUSE_EXIT) entered->outcome.cause = cause;
}

static void on_failure(struct entered *entered, const struct report *report) {
  struct outcome *outcome = &entered->outcome;
  outcome->cause = report->kind == REPORT_NO_EXEC ? CAUSE_EXEC : CAUSE_SETUP;
  outcome->error = report->error;
  copy_text(outcome->step, sizeof outcome->step, report->step);
  copy_text(outcome->path, sizeof outcome->path, report->path);
}

static void on_end(struct entered *entered, const struct report *report) {
  entered->outcome.wait_status = report->wait_status;
  entered->outcome.is_filtered = report->is_filtered != 0;
  entered->state = report->state;
  entered->outcome.cpu_us = (long long)report->cpu_us;
  entered->outcome.peak_bytes = (long long)report->peak_bytes;
}

static void on_report(struct entered *entered, const struct report *report, const int *fds, int count) {
  if (report->kind == REPORT_STARTED) {
    entered->outcome.started_ns = report->at_ns;
    if (count == 1) terminal_connect(&entered->terminal, fds[0], 0, 1);
    return;
  }
  if (report->kind == REPORT_ENDED) on_end(entered, report);
  else on_failure(entered, report);
  entered->outcome.ended_ns = report->at_ns;
  entered->is_over = 1;
}

static void on_loss(struct entered *entered) {
  entered->outcome.cause = CAUSE_LOST;
  entered->outcome.ended_ns = now_ns();
  entered->is_over = 1;
}

static void read_report(struct entered *entered) {
  struct report report;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(entered->session.fd, &report, sizeof report, MSG_DONTWAIT, fds, &count);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof report) return on_loss(entered);
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  on_report(entered, &report, fds, count);
}

static void send_signal(const struct entered *entered, int signal, int everyone) {
  struct request request = {.signal = signal, .everyone = everyone};
  (void)!send(entered->session.fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void read_signals(struct entered *entered) {
  struct signalfd_siginfo info;
  while (read(entered->signals.fd, &info, sizeof info) == sizeof info) {
    int signal = (int)info.ssi_signo, is_end = !is_passed_signal(signal);
    if (signal == SIGWINCH) {
      terminal_resize(&entered->terminal);
      continue;
    }
    if (is_end) note_cause(entered, CAUSE_CANCELLED), entered->outcome.cancelled_by = signal;
    send_signal(entered, signal, is_end);
  }
}

static void watch_output(struct entered *entered) {
  for (int i = 0; entered->capture.is_on && i < CAPTURE_POLLS; i++) {
    entered->output[i].fd = entered->capture.stream[i].ours;
    (void)loop_watch(&entered->output[i], EPOLLIN);
  }
}

static uint64_t watch(void *of) {
  struct entered *entered = of;
  (void)loop_watch(&entered->signals, EPOLLIN);
  if (!entered->is_over) (void)loop_watch(&entered->session, EPOLLIN);
  watch_output(entered);
  terminal_watch(&entered->terminal);
  return entered->is_over ? now_ns() + 1000000 : entered->outcome.cause == CAUSE_EXIT ? entered->end_at : 0;
}

/* The attendant gives everything that the command has started a moment, then kills it. */
static void end_in_time(struct entered *entered) {
  if (!entered->end_at || entered->outcome.cause != CAUSE_EXIT || now_ns() < entered->end_at) return;
  note_cause(entered, CAUSE_DEADLINE);
  send_signal(entered, SIGTERM, 1);
}

static void read_output(struct entered *entered) {
  struct pollfd ready[CAPTURE_POLLS];
  for (int i = 0; i < CAPTURE_POLLS; i++) ready[i] = (struct pollfd){.revents = (short)entered->output[i].got};
  if (entered->capture.is_on) capture_read(&entered->capture, ready);
}

static void relay(void *of) {
  struct entered *entered = of;
  if (entered->signals.got) read_signals(entered);
  if (entered->session.got) read_report(entered);
  if (!entered->is_over) end_in_time(entered);
  read_output(entered);
  terminal_relay(&entered->terminal);
}

static const struct part PARTS[] = {{watch, relay}, {NULL, NULL}};

/* A caller that ignores SIGCHLD would take the ends of our children from us. */
static int take_signals(sigset_t *before) {
  static const int taken[] = {SIGINT, SIGTERM, SIGQUIT, SIGWINCH};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaddset(&set, taken[i]);
  add_passed_signals(&set);
  if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigaction(SIGXFSZ, &ignore, NULL) < 0 || signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, &set, before) < 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Milliseconds for what the reader of a terminal has not taken yet. */
#define REST_MS 100

/* Drops output of an ended command that Node's listener has not taken: it may never take it. */
static void drop_rest(struct stream_files *files) {
  int status = 0, error;
  for (uint64_t end = now_ns() + REST_MS * 1000000ull; stream_files_are_busy(files);) {
    pid_t ended = waitpid(-1, &status, now_ns() < end ? WNOHANG : 0);
    if (ended > 0) (void)stream_files_on_end(files, ended, status, &error);
    if (ended == 0) poll(NULL, 0, 5);
    for (int i = 0; i < 3 && now_ns() >= end; i++)
      if (files->relay[i]) kill(files->relay[i], SIGKILL);
  }
}

/* Returns 0, or an exit status where what the command printed did not reach its file. */
static int finish_files(struct stream_files *files, int is_dropped) {
  int status = 0, error = 0, failed = 0;
  stream_files_stop(files);
  stream_files_finish(files);
  if (is_dropped) drop_rest(files);
  while (stream_files_are_busy(files)) {
    int which = stream_files_on_end(files, waitpid(-1, &status, 0), status, &error);
    if (which >= 0 && error) failed = complain(EXIT_KILLED, stream_name(which), strerror(error));
  }
  return failed;
}

static int until_end(struct entered *entered, const struct exec_in_words *words) {
  static struct streams streams;
  streams_note(&streams);
  while (!entered->is_over) (void)loop_turn(PARTS, entered);
  for (uint64_t end = now_ns() + REST_MS * 1000000ull; terminal_is_pending(&entered->terminal) && now_ns() < end;) (void)loop_turn(PARTS, entered);
  terminal_finish(&entered->terminal);
  streams_restore(&streams);
  capture_finish(&entered->capture);
  int failed = finish_files(&entered->files, words->reports && entered->outcome.cause != CAUSE_EXIT);
  return failed ? failed : exec_in_tell(words, &(struct exec_in_end){&entered->outcome, &entered->capture, &entered->before, entered->state});
}

/* Launch refuses such a stream as well, without a word. Returns 0, or an exit status. */
static int check_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (stream_check(fd) < 0) return complain(EXIT_SETUP, stream_name(fd), "expected a file, a pipe or a terminal, got a directory or a descriptor opened with O_PATH");
  return 0;
}

/* The command's streams in a living sandbox. Returns 0, or an exit status. */
static int make_streams(struct entered *entered, const struct exec_in_words *words, int streams[3]) {
  int which = 0, failed = check_streams();
  entered->files = (struct stream_files)STREAM_FILES_NONE;
  entered->files.carries_sockets = words->reports;
  if (failed) return failed;
  if (exec_in_capture(words, &entered->capture) < 0) return complain(EXIT_SETUP, "pipe", strerror(errno));
  capture_streams(&entered->capture, streams);
  if (!words->has_terminal && stream_files_replace(&entered->files, streams, &which) < 0) return complain(EXIT_SETUP, stream_name(which), strerror(errno));
  return 0;
}

/* Through `door`. */
static int run(const struct exec_in_words *words, int door) {
  static struct entered entered = {.outcome = OUTCOME_UNKNOWN};
  int streams[3], block, failed;
  entered.outcome.begun_ns = now_ns();
  entered.end_at = words->timeout_ms ? entered.outcome.begun_ns + words->timeout_ms * 1000000 : 0;
  terminal_none(&entered.terminal);
  entered.signals.fd = take_signals(&entered.before);
  block = exec_in_block(words); /* behind that: above a limit of file sizes it is an error, and no signal */
  if (entered.signals.fd < 0 || block < 0) return complain(EXIT_SETUP, "exec-in", strerror(errno));
  if ((failed = make_streams(&entered, words, streams))) return failed;
  entered.session.fd = ask(door, block, words, streams);
  /* The ends of captured output are closed by capture_finish. */
  for (int i = 0; i < 3; i++)
    if (streams[i] > 2 && (i == 0 || !entered.capture.is_on)) close(streams[i]);
  if (entered.session.fd < 0) return complain(EXIT_SETUP, "the sandbox cannot be entered", strerror(errno));
  return until_end(&entered, words);
}

int exec_in_main(int argc, char **argv) {
  struct exec_in_words words = {.name = NULL};
  if (argc < 4 || exec_in_read(argv + 3, &words) < 0)
    return complain(EXIT_SETUP, "usage", "exec-in DIRECTORY PARENT [OPTION...] -- COMMAND [ARG...]");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != atoi(argv[2])) return EXIT_SETUP; /* the caller has ended */
  int directory = records_open(argv[1]), door = directory < 0 ? -1 : open_door(directory);
  words.name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
  return door < 0 ? complain(EXIT_SETUP, "the sandbox cannot be entered", strerror(errno)) : run(&words, door);
}

/* ---- by the client ---- */

/* Where src/run/named-sandboxes.ts has it; the user's runtime directory only, any other place is Node's to find. */
static int open_named(const char *name) {
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  char base[PATH_MAX], path[PATH_MAX];
  int is_set = runtime && runtime[0] == '/';
  if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(name) || !isalnum((unsigned char)name[0])) return -1;
  if (geteuid() == 0) copy_text(base, sizeof base, "/run");
  else if (is_set) copy_text(base, sizeof base, runtime);
  else snprintf(base, sizeof base, "/run/user/%u", (unsigned)geteuid());
  return (size_t)snprintf(path, sizeof path, "%s/llm-do/named/%s", base, name) < sizeof path ? records_open(path) : -1;
}

static int has_value(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

int exec_in_by_name(char **argv) {
  struct exec_in_words words = {.name = NULL};
  if (has_value("LLM_DO_EXEC_WORKER") || has_value("LLM_DO_EXEC_AUDIT")) return -1; /* Node refuses them */
  if (exec_in_read(argv, &words) < 0 || !words.name || words.reports || streams_fill() < 0) return -1;
  int directory = open_named(words.name), door = directory < 0 ? -1 : open_door(directory);
  if (directory >= 0) close(directory);
  return door < 0 ? -1 : run(&words, door);
}
