/* The program: what it is given by descriptors and words (runner/launch.h). */
#include "runner/run.h"
#include "lib/any-directory.h"
#include "lib/pages.h"
#include "lib/programs.h"

#include "runner/fork-server.h"

#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void clean_descriptors(struct run *run) {
  if (streams_fill() < 0) run_refuse(run, "launch: open", "/dev/null");
  if (sys_close_range(TERMINATOR_FD + 1, ~0u) < 0) run_refuse(run, "launch: close_range", "");
  run->net.terminator = is_open(TERMINATOR_FD) ? TERMINATOR_FD : -1;
  for (int fd = LAUNCH_FILE_FD; fd <= TERMINATOR_FD; fd++)
    if (is_open(fd) && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) run_refuse(run, "launch: descriptor", "");
}

static void read_launch_file(struct run *run) {
  const char *problem = launchfile_read(LAUNCH_FILE_FD, &run->file);
  if (problem) run_refuse(run, "launch: launch file", problem);
}

/* A file that names hosts for the terminator is started with its channel, and no other one is. */
static void take_terminator(struct run *run) {
  struct entry entry;
  int is_wanted = launchfile_find(&run->file, V_NET_TERMINATE, &entry);
  errno = EBADF;
  if (is_wanted && run->net.terminator < 0) run_refuse(run, "launch: terminator", "");
  if (is_wanted || run->net.terminator < 0) return;
  close(run->net.terminator);
  run->net.terminator = -1;
}

/* A child of the server: its client's connection takes the place of the owner's. */
static void take_connection(struct run *run, int client) {
  if (dup3(client, RUN_FD, O_CLOEXEC) < 0) _exit(EXIT_SETUP);
  close(client);
  close(FORK_SERVER_FD); /* the place of the terminator's */
  run->caller.is_forked = 1;
  line_adopt_with_plan(&run->line, RUN_FD);
  run_await_plan(run);
}

#define USAGE "launch [--id ID] --streams own|output|all, with a socket as descriptor 4"

static void parse_arguments(struct run *run, int argc, char **argv) {
  int at = 1;
  if (at + 1 < argc && strcmp(argv[at], "--id") == 0) {
    errno = EINVAL;
    if (!is_run_id(argv[at + 1])) run_refuse(run, "launch: run id", argv[at + 1]);
    copy_text(run->id, sizeof run->id, argv[at + 1]);
    at += 2;
  }
  if (at + 2 == argc && strcmp(argv[at], "--streams") == 0 && run_has_client(run)) run->caller.stream_mode = argv[at + 1];
  else {
    errno = EINVAL;
    run_refuse(run, "launch: usage", USAGE);
  }
}

/* From here on every refusal reaches the caller by a frame. */
static void take_words(struct run *run, int argc, char **argv) {
  if (is_open(RUN_FD)) line_adopt(&run->line, RUN_FD);
  parse_arguments(run, argc, argv);
}

/*
 * Whether a process can be started in a cgroup, as that of a run is (runner/start.c): one that ends at once. Writing to cgroup.procs
 * would show as much, but the kernel moves a process between groups only after all processors have passed a quiet point: 10 ms.
 */
static int can_start_in(const char *path) {
  int group = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), status;
  if (group < 0) return 0;
  struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)group};
  pid_t child = sys_clone3(&args);
  if (child == 0) _exit(0);
  close(group);
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int print_landlock_version(void) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  printf("%ld\n", abi < 0 ? 0 : abi);
  return 0;
}

/* Why the plan for any directory does not serve the one that we are in, and those named behind the program; nothing where it does. */
static int print_unfit(const char *program, char **directory) {
  static struct places places;
  struct launchfile plan;
  const char *why, *problem = launchfile_read(STDIN_FILENO, &plan);
  if (problem) return fprintf(stderr, "launch: launch file: %s\n", *problem ? problem : strerror(errno)), EXIT_SETUP;
  for (why = places_begin(&places); !why && *directory; directory++) why = places_add(&places, *directory, strlen(*directory));
  if (why || (why = places_unfit(&places, &plan, program))) puts(why);
  return 0;
}

static _Alignas(PAGE_OF_ITS_OWN) struct run run; /* too big for the stack of a constrained caller */

/* Of the keeper's descriptors the child has but its own socket: another one's would hide from that sandbox that the keeper is gone. */
static void keep_socket(int keeper) {
  int none = dup2(keeper, RUN_FD) < 0 ? -1 : open("/dev/null", O_RDWR);
  for (int fd = 0; none >= 0 && fd <= STDERR_FILENO; fd++)
    if (dup2(none, fd) < 0) none = -1;
  if (none < 0 || close(LAUNCH_FILE_FD) < 0 || sys_close_range(RUN_FD + 1, ~0u) < 0) _exit(EXIT_SETUP);
}

_Noreturn void launch_warm(const struct warm_call *call) {
  keep_socket(call->keeper);
  prctl(PR_SET_NAME, "launch");
  run_begin(&run);
  run.caller.keeper.fd = RUN_FD;
  run.caller.is_kept = 1;
  run.file = *call->file;
  run.warm.is_on = 1;
  run.warm.directory = call->directory;
  copy_text(run.id, sizeof run.id, call->id);
  clean_descriptors(&run);
  run_prepare_process(&run);
  run_carry_out(&run);
}

int launch_main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--probe-host") == 0 && can_start_in(argv[2])) puts("entered");
  if ((argc == 2 || argc == 3) && strcmp(argv[1], "--probe-host") == 0) return print_landlock_version();
  if (argc >= 3 && strcmp(argv[1], "--fits") == 0) return print_unfit(argv[2], argv + 3);
  int client = argc == 4 && strcmp(argv[1], "--fork-server") == 0 ? fork_server(argv[2], argv[3]) : -1;
  run_begin(&run);
  run.stdio.before.starter = getppid();
  if (client >= 0) take_connection(&run, client);
  else take_words(&run, argc, argv);
  clean_descriptors(&run);
  run_prepare_process(&run);
  if (run.caller.stream_mode) run_make_streams(&run);
  if (client < 0) read_launch_file(&run);
  take_terminator(&run);
  if (run.caller.stream_mode) run_await_command(&run);
  run_carry_out(&run);
}
