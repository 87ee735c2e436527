/*
 * exec-in: another command in a sandbox that lives and serves (llm-do exec --in).
 *
 *   exec-in DIRECTORY PARENT plain|terminal -- COMMAND [ARG...]
 *
 * DIRECTORY is where its launcher is asked (lib/exec-in-socket.h), PARENT the process that has started us, with which we end. The command gets our
 * descriptors 0-2, or a terminal of the sandbox's that is connected with them. Of our environment it gets TERM. Ends with the exit
 * status of the command, 128 and the number of the signal that it died of, 137 where the sandbox has ended before it, or 125.
 */
#include "lib/contract.h"
#include "lib/exec-in-socket.h"
#include "lib/fd-message.h"
#include "lib/init-protocol.h"
#include "lib/passed-signals.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "lib/sealed-memory.h"
#include "lib/programs.h"
#include "runner/stream-check.h"
#include "runner/stream-files.h"
#include "runner/streams.h"
#include "runner/terminal.h"

#include <errno.h>
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

static int command_block(int count, char **words) {
  const char *term = getenv("TERM");
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (!out) return -1;
  fprintf(out, "%d%c%d%c0%c", count, 0, term != NULL, 0, 0);
  for (int i = 0; i < count; i++) fwrite(words[i], 1, strlen(words[i]) + 1, out);
  if (term) fprintf(out, "TERM=%s%c", term, 0);
  int fd = fclose(out) == 0 ? memory_sealed(bytes, size, "command") : -1;
  free(bytes);
  return fd;
}

/* Returns our end of the socket to the attendant, or -1 with errno. */
static int ask(int directory, int block, int how, const int *streams) {
  int ends[2], door = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = exec_in_address(directory);
  if (door < 0 || connect(door, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  struct request request = {.exec_in = how};
  int sent = message_send(door, &request, sizeof request, (int[EXEC_IN_DESCRIPTORS]){streams[0], streams[1], streams[2], block, ends[1]}, EXEC_IN_DESCRIPTORS);
  close(ends[1]), close(block), close(door);
  return sent < 0 ? -1 : ends[0];
}

/* ---- until its end ---- */

struct entered {
  struct source session, signals;
  int status; /* -1 until it is known */
  int cancelled_by;
  struct terminal terminal;
  struct stream_files files;
  struct report failure; /* of a command that was not executed; kind 0 = there is none */
};

static void on_report(struct entered *entered, const struct report *report, const int *fds, int count) {
  int status = report->wait_status;
  if (report->kind == REPORT_STARTED) return count == 1 ? terminal_connect(&entered->terminal, fds[0], 0, 1) : (void)0;
  if (report->kind != REPORT_ENDED) entered->failure = *report;
  entered->status = report->kind == REPORT_NO_EXEC ? (report->error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE)
                    : report->kind != REPORT_ENDED ? EXIT_SETUP
                    : WIFSIGNALED(status)          ? 128 + WTERMSIG(status)
                                                   : WEXITSTATUS(status);
}

static void read_report(struct entered *entered) {
  struct report report;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(entered->session.fd, &report, sizeof report, MSG_DONTWAIT, fds, &count);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof report) {
    entered->status = EXIT_KILLED;
    return;
  }
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  on_report(entered, &report, fds, count);
}

static void read_signals(struct entered *entered) {
  struct signalfd_siginfo info;
  while (read(entered->signals.fd, &info, sizeof info) == sizeof info) {
    struct request request = {.signal = (int)info.ssi_signo, .everyone = !is_passed_signal((int)info.ssi_signo)};
    if (request.signal == SIGWINCH) {
      terminal_resize(&entered->terminal);
      continue;
    }
    if (request.everyone) entered->cancelled_by = request.signal;
    (void)!send(entered->session.fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

static uint64_t watch(void *of) {
  struct entered *entered = of;
  (void)loop_watch(&entered->signals, EPOLLIN);
  if (entered->status < 0) (void)loop_watch(&entered->session, EPOLLIN);
  terminal_watch(&entered->terminal);
  return entered->status < 0 ? 0 : now_ns() + 1000000;
}

static void relay(void *of) {
  struct entered *entered = of;
  if (entered->signals.got) read_signals(entered);
  if (entered->session.got) read_report(entered);
  terminal_relay(&entered->terminal);
}

static const struct part PARTS[] = {{watch, relay}, {NULL, NULL}};

static int take_signals(void) {
  static const int taken[] = {SIGINT, SIGTERM, SIGQUIT, SIGWINCH};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaddset(&set, taken[i]);
  add_passed_signals(&set);
  if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigprocmask(SIG_SETMASK, &set, NULL) < 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int explain(const struct entered *entered) {
  const struct report *failure = &entered->failure;
  if (!failure->kind) return entered->cancelled_by && entered->status > 128 ? 128 + entered->cancelled_by : entered->status;
  const char *path = failure->path[0] ? failure->path : failure->step;
  if (failure->kind != REPORT_NO_EXEC) return complain(EXIT_SETUP, failure->step, strerror(failure->error));
  return complain(entered->status, path, failure->error == ENOENT ? "not found in the sandbox" : strerror(failure->error));
}

/* Milliseconds for what the reader of a terminal has not taken yet. */
#define REST_MS 100

/* Returns 0, or an exit status where what the command printed did not reach its file. */
static int finish_files(struct stream_files *files) {
  int status = 0, error = 0, failed = 0;
  stream_files_stop(files);
  stream_files_finish(files);
  while (stream_files_are_busy(files)) {
    int which = stream_files_on_end(files, waitpid(-1, &status, 0), status, &error);
    if (which >= 0 && error) failed = complain(EXIT_KILLED, stream_name(which), strerror(error));
  }
  return failed;
}

static int until_end(struct entered *entered) {
  static struct streams streams;
  streams_note(&streams);
  while (entered->status < 0) (void)loop_turn(PARTS, entered);
  for (uint64_t end = now_ns() + REST_MS * 1000000ull; terminal_is_pending(&entered->terminal) && now_ns() < end;) (void)loop_turn(PARTS, entered);
  terminal_finish(&entered->terminal);
  streams_restore(&streams);
  int failed = finish_files(&entered->files);
  return failed ? failed : explain(entered);
}

int exec_in_main(int argc, char **argv) {
  static struct entered entered = {.status = -1};
  if (argc < 6 || strcmp(argv[4], "--") != 0)
    return complain(EXIT_SETUP, "usage", "exec-in DIRECTORY PARENT plain|terminal -- COMMAND [ARG...]");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != atoi(argv[2])) return EXIT_SETUP; /* nobody waits for it any more */
  terminal_none(&entered.terminal);
  entered.signals.fd = take_signals();
  int directory = records_open(argv[1]), block = command_block(argc - 5, argv + 5);
  if (entered.signals.fd < 0 || directory < 0 || block < 0) return complain(EXIT_SETUP, "exec-in", strerror(errno));
  int how = strcmp(argv[3], "terminal") == 0 ? EXEC_IN_TERMINAL : EXEC_IN_PLAIN, streams[] = {0, 1, 2}, which = 0;
  entered.files = (struct stream_files)STREAM_FILES_NONE;
  if (how == EXEC_IN_PLAIN && stream_files_replace(&entered.files, streams, &which) < 0) return complain(EXIT_SETUP, stream_name(which), strerror(errno));
  entered.session.fd = ask(directory, block, how, streams);
  for (int i = 0; i < 3; i++)
    if (streams[i] > 2) close(streams[i]);
  if (entered.session.fd < 0) return complain(EXIT_SETUP, "the sandbox cannot be entered", strerror(errno));
  return until_end(&entered);
}
