/*
 * run: the stopwatch of the bench. Starts commands by turns, each round in another order, and prints how long each took. What a
 * sandbox leaves to the kernel when it has ended (its network namespace, about a millisecond) is done while the next command runs:
 * in one order for all rounds one command would always pay for the same other.
 *
 *   run ROUNDS AT_ONCE [![STATUS]] COMMAND [ARG...] [::: [![STATUS]] COMMAND [ARG...]]...
 *
 * One line a round, one number a command, in the order in which they were given: nanoseconds of CLOCK_MONOTONIC from before the spawn until the process is reaped.
 * With AT_ONCE above 1 a number is the time of AT_ONCE processes started together, until the last one is reaped.
 * A small static program, because node's own spawn costs four milliseconds and what is measured here costs two.
 * Streams are /dev/null. A command that fails ends the run with what it printed on stderr, since times of failures are worth nothing;
 * one after `!` has to fail with exit status 1, as grep does that finds nothing, or with the one that `!STATUS` names.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 64, AT_ONCE_MAX = 64, ERRORS = 9 };

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void give_up(const char *what, const char *on) {
  fprintf(stderr, "run: %s: %s\n", what, on);
  exit(1);
}

static void show_errors(void) {
  char text[4096];
  ssize_t got = pread(ERRORS, text, sizeof text, 0);
  if (got > 0) fwrite(text, 1, (size_t)got, stderr);
}

static void wait_for(const char *name, int expected) {
  int status;
  if (wait(&status) < 0) give_up(strerror(errno), name);
  if (status == expected) return;
  show_errors();
  char text[64];
  snprintf(text, sizeof text, "ended with wait status 0x%x", (unsigned)status);
  give_up(text, name);
}

static char home[4096];

static long long time_of(char **command, int at_once, const posix_spawn_file_actions_t *streams) {
  pid_t pid;
  int expected = 0;
  if (command[0][0] == '!') {
    expected = (command[0][1] ? atoi(command[0] + 1) : 1) << 8;
    command++;
  }
  /* `@DIRECTORY`: where it is run; a link there may lead elsewhere in each round. */
  char *there = command[0][0] == '@' ? *command++ + 1 : home;
  if (chdir(there) < 0) give_up(strerror(errno), there);
  if (ftruncate(ERRORS, 0) < 0 || lseek(ERRORS, 0, SEEK_SET) < 0) give_up(strerror(errno), "stderr of the commands");
  long long begun = now_ns();
  for (int i = 0; i < at_once; i++) {
    int error = posix_spawnp(&pid, command[0], streams, NULL, command, environ);
    if (error) give_up(strerror(error), command[0]);
  }
  for (int i = 0; i < at_once; i++) wait_for(command[0], expected);
  return now_ns() - begun;
}

/* Fisher and Yates. */
static void shuffle(int *order, int count) {
  for (int i = count - 1; i > 0; i--) {
    int other = (int)(random() % (i + 1)), here = order[i];
    order[i] = order[other];
    order[other] = here;
  }
}

static void run_round(char ***command, int count, int at_once, const posix_spawn_file_actions_t *streams) {
  int order[COMMANDS_MAX];
  long long times[COMMANDS_MAX];
  for (int i = 0; i < count; i++) order[i] = i;
  shuffle(order, count);
  for (int i = 0; i < count; i++) times[order[i]] = time_of(command[order[i]], at_once, streams);
  for (int i = 0; i < count; i++) printf("%lld%c", times[i], i + 1 < count ? ' ' : '\n');
  fflush(stdout); /* the reader shows the progress */
}

int main(int argc, char **argv) {
  if (!getcwd(home, sizeof home)) give_up(strerror(errno), "working directory");
  char **command[COMMANDS_MAX];
  int count = 0, rounds = argc > 1 ? atoi(argv[1]) : 0, at_once = argc > 2 ? atoi(argv[2]) : 0;
  if (argc < 4 || rounds < 1 || at_once < 1 || at_once > AT_ONCE_MAX) give_up("usage", "run ROUNDS AT_ONCE COMMAND... [::: COMMAND...]");
  command[count++] = argv + 3;
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], ":::") != 0) continue;
    if (count == COMMANDS_MAX) give_up("too many commands", argv[i + 1]);
    argv[i] = NULL;
    command[count++] = argv + i + 1;
  }
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&streams, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&streams, ERRORS, 2);
  int errors = memfd_create("errors", MFD_CLOEXEC);
  if (errors < 0 || dup3(errors, ERRORS, O_CLOEXEC) < 0) give_up(strerror(errno), "stderr of the commands");
  srandom((unsigned)now_ns()); /* a run of one round only is not always in the same order */
  for (int round = 0; round < rounds; round++) run_round(command, count, at_once, &streams);
  return 0;
}
