/*
 * Theory of operation. Launch stays on the host: it makes what must be removed again (the record of the run, placeholders,
 * the cgroup), clones the stager (stage.h) into the cgroup, and waits in one poll loop for whatever comes first: reports of
 * the stager or init, a signal, the end of the leash, the deadline, the memory watchdog. Every reason to stop goes the same
 * way: SIGTERM for everything inside, a short grace, then SIGKILL for the cgroup and the engine. Launch is a subreaper and
 * the run is over when waitpid knows no child any more, so nothing can be left. If launch itself is killed, the engine dies
 * of PDEATHSIG, init of the control socket's end, and the next launch removes what the record names.
 */
#include "launch.h"

#include "cgroup.h"
#include "chain.h"
#include "fail.h"
#include "kernel.h"
#include "launchfile.h"
#include "placeholder.h"
#include "record.h"
#include "stage.h"
#include "status.h"
#include "terminal.h"
#include "warm.h"
#include "watchdog.h"

#include <errno.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

enum { FD_LAUNCH_FILE = 3, FD_STATUS = 4, FD_LEASH = 5, FD_COMMAND = 6 };

#define COMMAND_BYTES_MAX FRAME_RUN_MAX

/* From SIGTERM to SIGKILL. The contract: the tree is gone 200 ms after a deadline, 500 ms after a signal to the runner. */
#define GRACE_DEADLINE_MS 100
#define GRACE_CANCEL_MS 250
/* The watchdog rung promises to look at least every 50 ms. */
#define TICK_MS 25
#define MS 1000000ull

extern char **environ;

struct run {
  struct launchfile file;
  char id[RUN_ID_MAX + 1];
  char **command, **env;
  const struct launch_call *caller; /* in this process; NULL = our own program */
  char init[PATH_MAX];
  const char *framed; /* `output`, `all`; NULL = the command has our own streams */
  int stdio[3];       /* the command's ends */
  int status;         /* -1 without */
  int leash;  /* -1 without */

  int records, record;
  int cgroup_parent, cgroup;
  char cgroup_name[RUN_ID_MAX + sizeof CGROUP_PREFIX];
  struct placeholders placeholders;

  int control; /* our end */
  int errors;  /* what the engine prints */
  pid_t engine;
  int engine_gone; /* reaped: its pid may be somebody else's */
  int signals;

  struct terminal terminal;
  struct warm warm;
  const char *warm_directory; /* NULL = an ordinary run */
  int answered;               /* the warm client has its status */
  int namespaces[READY_DESCRIPTORS];
  struct watchdog watchdog;
  int watching;
  uint64_t memory_limit; /* of the watchdog, bytes */
  int scratch[REPORT_DESCRIPTORS_MAX];
  int scratch_count;
  uint64_t deadline_ns; /* a length until the command has started, then a point in time; 0 = none */
  uint64_t cpu_limit_us;

  int stopping;
  uint64_t kill_at; /* CLOCK_MONOTONIC; 0 = not yet */
  struct outcome outcome;
};

/* ---- giving up before there is anything to wait for ---- */

static void blame(struct run *run, int error, const char *step, const char *path) {
  if (run->outcome.step[0]) return; /* the first failure explains the others */
  run->outcome.cause = CAUSE_SETUP;
  run->outcome.error = error;
  copy_text(run->outcome.step, sizeof run->outcome.step, step);
  copy_text(run->outcome.path, sizeof run->outcome.path, path);
}

static void release(struct run *run);
static void part_from_client(struct run *run);

static int has_client(const struct run *run) { return run->warm.taken; }

/* Descriptor 4 speaks frames, also when all that is left to say is why there was no run. */
static void give_client(struct run *run) {
  warm_adopt(&run->warm, run->status);
  run->status = -1;
}

static _Noreturn void answer_caller(const struct run *run) {
  size_t size;
  const char *line = status_line(&run->outcome, &size);
  run->caller->ended(run->caller->context, status_exit_code(&run->outcome), line ? line : "");
  _exit(125);
}

static _Noreturn void finish(struct run *run) {
  if (run->framed && !has_client(run) && run->status >= 0) give_client(run);
  if (has_client(run)) part_from_client(run);
  warm_close(&run->warm); /* nobody shall find a socket that leads nowhere */
  release(run);
  if (run->caller) answer_caller(run);
  if (run->status >= 0 ? status_write(run->status, &run->outcome) < 0 : !has_client(run)) status_print(&run->outcome);
  _exit(status_exit_code(&run->outcome));
}

static _Noreturn void refuse(struct run *run, const char *step, const char *path) {
  blame(run, errno, step, path);
  finish(run);
}

/* ---- a clean start ---- */

static int is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* A caller may have closed 0, 1 or 2; a descriptor opened later must not become the command's stream. */
static int fill_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (!is_open(fd) && open("/dev/null", O_RDWR) != fd) return -1;
  return 0;
}


static void clean_descriptors(struct run *run) {
  run->leash = is_open(FD_LEASH) && !run->framed ? FD_LEASH : -1; /* framed, whatever is there is none of ours */
  if (fill_streams() < 0) refuse(run, "launch: open", "/dev/null");
  if (sys_close_range(FD_COMMAND + 1, ~0u) < 0) refuse(run, "launch: close_range", "");
  for (int fd = FD_LAUNCH_FILE; fd <= FD_COMMAND; fd++)
    if (is_open(fd) && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) refuse(run, "launch: descriptor", "");
}

/* Inherited dispositions and masks, real-time ones included, are the caller's business: an ignored SIGCHLD would hang bwrap. */
static void take_signals(struct run *run) {
  static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  for (int signal = 1; signal < _NSIG; signal++) sys_reset_signal(signal); /* KILL and STOP refuse */
  sigaction(SIGPIPE, &ignore, NULL);
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&set, watched[i]);
  if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) refuse(run, "launch: sigprocmask", "");
  run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (run->signals < 0) refuse(run, "launch: signalfd", "");
}

/* A file that leaves out a wall is damaged: what is meant to be off says so. */
static void require_walls(struct run *run) {
  static const enum verb walls[] = {V_ENGINE, V_IDENTITY, V_NET, V_READONLY, V_MASK, V_LANDLOCK, V_SECCOMP, V_WORKDIR, V_TERMINAL};
  struct record record;
  errno = EINVAL;
  for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
    if (!launchfile_find(&run->file, walls[i], &record)) refuse(run, "launch: launch file", "a wall is missing");
}

/* From here on every refusal reaches the client as a frame. */
static void take_client(struct run *run) {
  if (!run->framed) return;
  errno = EINVAL;
  if (run->status < 0 || (strcmp(run->framed, "output") != 0 && strcmp(run->framed, "all") != 0)) refuse(run, "launch: usage", "--framed");
  give_client(run);
  if (warm_make_streams(&run->warm, run->framed[0] == 'a', run->stdio) < 0) refuse(run, "launch: pipe", "");
}

static void drop_stdio(struct run *run) {
  for (int i = 0; run->framed && i < 3; i++) {
    if (run->stdio[i] > 2) close(run->stdio[i]);
    run->stdio[i] = i;
  }
}

static void read_launch_file(struct run *run) {
  size_t size;
  const char *problem = "";
  char *bytes = read_all(FD_LAUNCH_FILE, LAUNCHFILE_MAX, &size);
  if (!bytes) refuse(run, "launch: read launch file", "");
  errno = EINVAL;
  if (launchfile_check(bytes, size, &run->file, &problem) < 0) refuse(run, "launch: launch file", problem);
}

/* A limit that cannot be read is refused before anything starts. */
static uint64_t limit_of(struct run *run, enum verb verb, uint64_t max, const char *step) {
  struct record record;
  uint64_t number;
  if (!launchfile_find(&run->file, verb, &record)) return 0;
  errno = EINVAL;
  if (parse_number(record.word[0], max, &number) < 0 || number == 0) refuse(run, step, record.word[0]);
  return number;
}

static void read_limits(struct run *run) {
  run->deadline_ns = limit_of(run, V_DEADLINE, UINT64_MAX / MS / 2, "launch: deadline") * MS;
  run->cpu_limit_us = limit_of(run, V_CPU_TIME, INT64_MAX / 1000, "launch: cpu time") * 1000;
  run->memory_limit = limit_of(run, V_WATCH, INT64_MAX, "launch: memory watchdog");
  run->watching = run->memory_limit > 0;
}

static void find_init(struct run *run) {
  ssize_t length = readlink("/proc/self/exe", run->init, sizeof run->init - sizeof "init");
  if (length < 0) refuse(run, "launch: find helpers", "/proc/self/exe");
  run->init[length] = 0;
  char *name = strrchr(run->init, '/');
  strcpy(name ? name + 1 : run->init, "init");
  if (access(run->init, X_OK) < 0) refuse(run, "launch: find helpers", run->init);
}

/* ---- what is made on the host, and removed again ---- */

static void open_record(struct run *run) {
  struct record record;
  if (!launchfile_find(&run->file, V_RUNS, &record)) return;
  run->records = records_open(record.word[0]);
  if (run->records < 0) refuse(run, "launch: runs directory", record.word[0]);
  records_prune(run->records);
  run->record = record_create(run->records, run->id);
  if (run->record < 0) refuse(run, "launch: record of the run", run->id);
}

static int put_record(const struct run *run) {
  struct record profile, cgroup;
  char path[PATH_MAX + sizeof run->cgroup_name + 1] = "";
  if (run->record < 0) return 0;
  if (run->cgroup_name[0] && launchfile_find(&run->file, V_CGROUP, &cgroup))
    snprintf(path, sizeof path, "%s/%s", cgroup.word[0], run->cgroup_name);
  struct run_record content = {run->id, launchfile_find(&run->file, V_PROFILE, &profile) ? profile.word[0] : "", path,
                               run->command, &run->placeholders};
  return record_write(run->record, &content);
}

static void write_record(struct run *run) {
  if (put_record(run) < 0) refuse(run, "launch: record of the run", run->id);
}

/* A kernel that counts no swap needs no limit of it while there is none. */
static int is_vain(const char *file) {
  struct sysinfo host;
  return strcmp(file, "memory.swap.max") == 0 && sysinfo(&host) == 0 && host.totalswap == 0;
}

static void set_group_limits(struct run *run) {
  struct record record;
  size_t position = 0;
  while (launchfile_next(&run->file, &position, &record)) {
    if (record.verb != V_SET) continue;
    int done = cgroup_set(run->cgroup, record.word[0], record.word[1]);
    if (done == CGROUP_ABSENT && is_vain(record.word[0])) continue;
    if (done == CGROUP_ABSENT) errno = ENOENT; /* the plan promised what this kernel has not */
    if (done != 0) refuse(run, "launch: set limit", record.word[0]);
  }
}

static void name_group(struct run *run) {
  struct record record;
  if (launchfile_find(&run->file, V_CGROUP, &record))
    snprintf(run->cgroup_name, sizeof run->cgroup_name, "%s%s", CGROUP_PREFIX, run->id);
}

static void make_group(struct run *run) {
  struct record record;
  if (!launchfile_find(&run->file, V_CGROUP, &record)) return;
  run->cgroup_parent = cgroup_open(record.word[0]);
  if (run->cgroup_parent < 0) refuse(run, "launch: open cgroup", record.word[0]);
  run->cgroup = cgroup_create(run->cgroup_parent, run->cgroup_name);
  if (run->cgroup < 0) refuse(run, "launch: make cgroup", record.word[0]);
  set_group_limits(run);
}

static void make_placeholders(struct run *run) {
  const char *path = "";
  if (run->warm_directory) return; /* they would stand in the user's directory while nothing runs */
  int made = placeholders_make(&run->file, &run->placeholders, &path);
  if (made < 0) refuse(run, "launch: protect", path);
}

static void release(struct run *run) {
  placeholders_remove(&run->placeholders);
  int is_gone = run->cgroup < 0 || cgroup_end(run->cgroup_parent, run->cgroup_name, run->cgroup) == 0;
  /* What could not be removed stays on record, for the janitor. */
  if (run->record >= 0 && is_gone) record_remove(run->records, run->id, run->record);
}

static void prepare_warm(struct run *run) {
  if (!run->warm_directory) return;
  if (warm_prepare(&run->warm, run->warm_directory, run->id, &run->file, run->init) < 0) refuse(run, "launch: warm", run->warm_directory);
}

/* ---- the stager ---- */

static int sealed(struct run *run, const char *bytes, size_t size, const char *what) {
  int fd = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) refuse(run, "launch: memfd", what);
  for (size_t sent = 0; sent < size;) {
    ssize_t got = write(fd, bytes + sent, size - sent);
    if (got < 0) refuse(run, "launch: memfd", what);
    sent += (size_t)got;
  }
  if (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
    refuse(run, "launch: memfd", what);
  return fd;
}

static size_t count_words(char **words) {
  size_t count = 0;
  while (words[count]) count++;
  return count;
}

static void put_words(FILE *out, char **words) {
  for (; *words; words++) fwrite(*words, 1, strlen(*words) + 1, out);
}

static int command_block(struct run *run) {
  char *bytes = NULL;
  size_t size = 0;
  if (run->warm_directory) return sealed(run, "0\0000", sizeof "0\0000", "command"); /* init asks for it */
  FILE *out = open_memstream(&bytes, &size);
  if (!out) refuse(run, "launch: memory", "");
  fprintf(out, "%zu%c%zu%c", count_words(run->command), 0, count_words(run->env), 0);
  put_words(out, run->command);
  put_words(out, run->env);
  if (fclose(out) != 0) refuse(run, "launch: memory", "");
  return sealed(run, bytes, size, "command");
}

/* Into the cgroup by clone3; where it answers ENOSYS the child waits at a gate until it has been moved. */
static pid_t clone_into_group(struct run *run) {
  struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)run->cgroup};
  pid_t child = sys_clone3(&args);
  if (child >= 0 || errno != ENOSYS) return child;
  int gate[2];
  char byte;
  if (pipe2(gate, O_CLOEXEC) < 0) return -1;
  child = fork();
  if (child == 0) {
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 1) _exit(125);
    return 0;
  }
  char text[16];
  snprintf(text, sizeof text, "%d", child);
  int moved = child < 0 ? -1 : cgroup_set(run->cgroup, "cgroup.procs", text);
  if (moved == 0) moved = write(gate[1], &byte, 1) == 1 ? 0 : -1;
  close(gate[0]), close(gate[1]);
  if (moved != 0 && child > 0) kill(child, SIGKILL);
  return moved == 0 ? child : -1;
}

static void limit_processors(struct run *run) {
  struct record record;
  uint64_t count;
  cpu_set_t all, some;
  if (!launchfile_find(&run->file, V_AFFINITY, &record)) return;
  errno = EINVAL;
  if (parse_number(record.word[0], CPU_SETSIZE, &count) < 0 || count == 0) refuse(run, "launch: affinity", record.word[0]);
  if (sched_getaffinity(0, sizeof all, &all) < 0) refuse(run, "launch: affinity", "");
  CPU_ZERO(&some);
  /* Starting at a place that differs from run to run spreads the load of many sandboxes. */
  for (int i = 0, cpu = getpid(); i < CPU_SETSIZE && count > 0; i++, cpu++)
    if (CPU_ISSET(cpu % CPU_SETSIZE, &all)) CPU_SET(cpu % CPU_SETSIZE, &some), count--;
  if (sched_setaffinity(0, sizeof some, &some) < 0) refuse(run, "launch: affinity", record.word[0]);
}

static _Noreturn void become_stager(struct run *run, struct stage *stage) {
  sigset_t none;
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigemptyset(&none);
  sigaction(SIGPIPE, &standard, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  limit_processors(run);
  stage_and_exec(stage);
}

static void start_stager(struct run *run) {
  int control[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) refuse(run, "launch: socketpair", "");
  if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0) refuse(run, "launch: pipe", "");
  /* High numbers: the stager places them at 0-8 and must not overwrite one before it is placed. */
  struct stage stage = {.file = &run->file,
                        .launch_file = sealed(run, run->file.bytes, run->file.size, "launch-file"),
                        .command = command_block(run),
                        .control = control[1],
                        .errors = errors[1],
                        .init = run->init,
                        .stdio = {run->stdio[0], run->stdio[1], run->stdio[2]},
                        .launch = getpid(),
                        .id = run->id};
  int *fds[] = {&stage.launch_file, &stage.command, &stage.control, &stage.errors, &stage.stdio[0], &stage.stdio[1], &stage.stdio[2]};
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
    *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 32);
    if (*fds[i] < 0) refuse(run, "launch: descriptor", "");
  }
  run->engine = run->cgroup >= 0 ? clone_into_group(run) : fork();
  if (run->engine < 0) refuse(run, "launch: clone", "");
  if (run->engine == 0) become_stager(run, &stage);
  close(control[1]), close(errors[1]);
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) close(*fds[i]);
  drop_stdio(run);
  run->control = control[0];
  run->errors = errors[0];
}

/* ---- stopping ---- */

/* As their subreaper we get what the engine leaves behind: a child of bwrap that has not yet tied itself to its parent, and
 * an init that still waits. PID 1 takes the whole sandbox with it. */
static void kill_children(void) {
  char path[64], pids[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, pids, sizeof pids - 1);
  if (fd >= 0) close(fd);
  pids[size > 0 ? size : 0] = 0;
  char *rest = NULL;
  for (char *pid = strtok_r(pids, " ", &rest); pid; pid = strtok_r(NULL, " ", &rest)) kill(atoi(pid), SIGKILL);
}

static void kill_everything(struct run *run) {
  if (run->cgroup >= 0) cgroup_kill(run->cgroup);
  if (!run->engine_gone) kill(run->engine, SIGKILL);
  kill_children();
  run->kill_at = now_ns() + 100 * MS; /* again, should something have been born meanwhile */
}

static void send_request(struct run *run, int signal, int everyone) {
  struct request request = {signal, everyone};
  (void)!send(run->control, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void stop(struct run *run, enum cause cause, unsigned grace_ms) {
  if (run->stopping && grace_ms) return; /* the same Ctrl-C may reach us twice, from the terminal and from the runner */
  if (!run->stopping) run->outcome.cause = cause;
  run->stopping = 1;
  if (!run->outcome.started_ns || grace_ms == 0) return kill_everything(run);
  run->kill_at = now_ns() + grace_ms * MS;
  send_request(run, cause == CAUSE_CANCELLED && run->outcome.cancelled_by ? run->outcome.cancelled_by : SIGTERM, 1);
}

/* ---- a warm sandbox ---- */

static void tell_keeper(const struct run *run, char what) {
  if (run->status >= 0) (void)!write(run->status, &what, 1);
}

static char *next_word(char **at, const char *end) {
  char *word = *at, *nul = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;
  if (nul) *at = nul + 1;
  return nul ? word : NULL;
}

/* Most words of a command that the record of its run needs. */
#define WORDS_SHOWN 64

/* The command of a block, as far as people see it. init checks the block; what is odd is only not recorded. */
static char **words_of(char *block, size_t size) {
  static char *words[WORDS_SHOWN + 1];
  char *at = block, *word = next_word(&at, block + size);
  uint64_t count = 0;
  if (!word || parse_number(word, size, &count) < 0 || !next_word(&at, block + size)) return words;
  for (size_t i = 0; i < count && i < WORDS_SHOWN && (word = next_word(&at, block + size)); i++) words[i] = word;
  return words;
}

static int send_run(struct run *run, const int fds[REQUEST_RUN_DESCRIPTORS]) {
  struct request request = {.signal = REQUEST_RUN};
  struct iovec bytes = {&request, sizeof request};
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * REQUEST_RUN_DESCRIPTORS)];
  } control;
  control.header = (struct cmsghdr){
      .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * REQUEST_RUN_DESCRIPTORS)};
  memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * REQUEST_RUN_DESCRIPTORS);
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  return sendmsg(run->control, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* What a run finds made before its tree is built, a warm one gets now. */
static int protect_late(struct run *run) {
  const char *path = "";
  int status;
  if (placeholders_make(&run->file, &run->placeholders, &path) < 0) return blame(run, errno, "launch: protect", path), -1;
  if (run->placeholders.count == 0) return 0;
  pid_t child = fork();
  if (child == 0) stage_cover_placeholders(&run->file, run->namespaces[0], run->namespaces[1]);
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return 0;
  return blame(run, child < 0 ? errno : 0, "launch: protect", run->placeholders.item[0].path), -1;
}

/* The client is told first: what it has not seen, has not happened. */
static void run_warm(struct run *run) {
  size_t size;
  const char *block = warm_command(&run->warm, &size);
  int fds[REQUEST_RUN_DESCRIPTORS] = {sealed(run, block, size, "command"), -1, -1, -1};
  if (warm_streams(&run->warm, fds + 1) < 0 || warm_accept(&run->warm) < 0) {
    stop(run, CAUSE_CANCELLED, 0);
  } else {
    run->outcome.begun_ns = now_ns();
    run->leash = -1; /* from the keeper's hand to the client's */
    run->command = words_of((char *)(uintptr_t)block, size);
    int ready = protect_late(run);
    int is_awaited = run->placeholders.count > 0; /* a record that names nothing more to be removed may come later */
    if (is_awaited) write_record(run);
    if (ready == 0 && (ready = send_run(run, fds)) < 0) blame(run, errno, "launch: send command", "");
    for (int i = 0; i < READY_DESCRIPTORS; i++) close(run->namespaces[i]); /* held, they would outlive the sandbox */
    /* The command may run by now: a refusal would send the client the cold way, and run it twice. All that is missing then are
     * its words in `llm-do ps`. */
    if (!is_awaited) (void)put_record(run);
    if (ready < 0) kill_everything(run);
  }
  for (int i = 0; i < REQUEST_RUN_DESCRIPTORS; i++)
    if (fds[i] >= 0) close(fds[i]);
  tell_keeper(run, WARM_IS_TAKEN); /* last: it wakes somebody who would take the processor from the command */
}

static void on_ready(struct run *run, const int *fds, int count) {
  if (run->stopping || count != READY_DESCRIPTORS) return;
  memcpy(run->namespaces, fds, sizeof run->namespaces);
  if (warm_show(&run->warm) == 0) return tell_keeper(run, WARM_IS_READY);
  blame(run, errno, "launch: show socket", run->warm_directory);
  kill_everything(run);
}

static void on_signal(struct run *run, int signal);

static void relay_warm(struct run *run, const struct pollfd *watched) {
  if (!run->warm_directory && !run->framed) return;
  switch (warm_relay(&run->warm, watched)) {
    case WARM_RUN: return run->stopping ? warm_refuse(&run->warm) : run_warm(run);
    case WARM_SIGNAL: return on_signal(run, warm_signal(&run->warm));
    case WARM_GONE: return run->answered ? (void)0 : stop(run, CAUSE_CANCELLED, 0);
    case WARM_NOTHING: return;
  }
}

/* ---- events ---- */

static void begin_limits(struct run *run) {
  if (run->deadline_ns) run->deadline_ns += run->outcome.started_ns;
  if ((!run->watching && !run->cpu_limit_us) || run->engine_gone) return;
  int ready = watchdog_init(&run->watchdog, run->engine, run->cgroup, (long long)run->memory_limit);
  for (int i = 0; ready == 0 && i < run->scratch_count; i++) ready = watchdog_add_scratch(&run->watchdog, run->scratch[i]);
  if (ready == 0) return;
  blame(run, errno, "launch: watchdog", "");
  kill_everything(run);
}

/* From now on the end of this process is the end of the run. Once it is reaped its pid may be somebody else's, who is no child of ours. */
static void on_init(struct run *run, pid_t init) {
  siginfo_t ended;
  run->engine = init;
  run->engine_gone = waitid(P_PID, (id_t)init, &ended, WEXITED | WNOHANG | WNOWAIT) < 0;
}

static void on_started(struct run *run, const struct report *report, int master) {
  run->outcome.started_ns = report->at_ns;
  if (master >= 0) terminal_connect(&run->terminal, master, 0, 1);
  begin_limits(run);
}

static void on_ended(struct run *run, const struct report *report) {
  /* What waited for a command was killed, and was none. */
  if (!run->outcome.started_ns) return blame(run, 0, "sandbox ended before its command", "");
  run->outcome.wait_status = report->wait_status;
  run->outcome.ended_ns = report->at_ns;
  run->outcome.killed = report->killed;
  run->outcome.cpu_us = (long long)report->cpu_us;
  run->outcome.peak_bytes = (long long)report->peak_bytes;
}

static void on_report(struct run *run, const struct report *report, const int *fds, int count) {
  switch (report->kind) {
    case REPORT_SCRATCH:
      memcpy(run->scratch, fds, sizeof *fds * (size_t)count);
      run->scratch_count = count;
      break;
    case REPORT_INIT: on_init(run, report->pid); break;
    case REPORT_STARTED: on_started(run, report, count ? fds[0] : -1); break;
    case REPORT_ENDED: on_ended(run, report); break;
    case REPORT_READY: on_ready(run, fds, count); break;
    case REPORT_NO_EXEC:
      if (!run->stopping) run->outcome.cause = CAUSE_EXEC;
      run->outcome.error = report->error;
      copy_text(run->outcome.step, sizeof run->outcome.step, report->step);
      copy_text(run->outcome.path, sizeof run->outcome.path, report->path);
      break;
    default: blame(run, report->error, report->step, report->path);
  }
}

/* Returns 0 when nobody is left who could report. */
static int read_report(struct run *run) {
  struct report report;
  struct iovec bytes = {&report, sizeof report};
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * REPORT_DESCRIPTORS_MAX)];
  } control;
  struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  ssize_t got = recvmsg(run->control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (got != sizeof report) return 0;
  int fds[REPORT_DESCRIPTORS_MAX], count = 0;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_type == SCM_RIGHTS) {
    count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(header), sizeof(int) * (size_t)count);
  }
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  on_report(run, &report, fds, count);
  return 1;
}

static void read_errors(struct run *run) {
  size_t have = strlen(run->outcome.detail);
  char rest[256];
  ssize_t got = have + 1 < sizeof run->outcome.detail
                    ? read(run->errors, run->outcome.detail + have, sizeof run->outcome.detail - have - 1)
                    : read(run->errors, rest, sizeof rest);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  close(run->errors);
  run->errors = -1;
}

static void on_signal(struct run *run, int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGWINCH) return terminal_resize(&run->terminal);
  if (!run->stopping) run->outcome.cancelled_by = signal;
  stop(run, CAUSE_CANCELLED, GRACE_CANCEL_MS);
}

static void read_signals(struct run *run) {
  struct signalfd_siginfo info;
  while (read(run->signals, &info, sizeof info) == sizeof info) on_signal(run, (int)info.ssi_signo);
}

static void read_leash(struct run *run) {
  char nothing[64];
  ssize_t got = read(run->leash, nothing, sizeof nothing);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  run->leash = -1;
  stop(run, CAUSE_CANCELLED, 0); /* the runner is gone: nobody waits for a polite end */
}

static void look_at_memory(struct run *run) {
  int over = watchdog_sample(&run->watchdog);
  if (over < 0) blame(run, errno, "launch: watchdog", ""); /* an unwatched limit is no limit */
  if (over != WATCHDOG_UNDER) stop(run, over == WATCHDOG_OVER ? CAUSE_MEMORY : CAUSE_SETUP, 0);
}

static void look_at_limits(struct run *run) {
  uint64_t now = now_ns();
  if (run->kill_at && now >= run->kill_at) kill_everything(run);
  if (run->stopping || !run->outcome.started_ns || run->outcome.ended_ns) return;
  if (run->deadline_ns && now >= run->deadline_ns) return stop(run, CAUSE_DEADLINE, GRACE_DEADLINE_MS);
  if (run->watching && watchdog_is_due(&run->watchdog)) look_at_memory(run);
  if (run->cpu_limit_us && watchdog_cpu_usec(&run->watchdog) >= (long long)run->cpu_limit_us)
    stop(run, CAUSE_CPU_TIME, GRACE_DEADLINE_MS);
}

/* Milliseconds until look_at_limits has something to do; -1 = never. */
static int patience(const struct run *run) {
  uint64_t now = now_ns(), next = run->kill_at;
  int is_running = run->outcome.started_ns && !run->outcome.ended_ns; /* what only waits for its command has no limits yet */
  if (!next && is_running) next = run->deadline_ns;
  if (is_running && (run->watching || run->cpu_limit_us)) {
    uint64_t tick = now + TICK_MS * MS;
    if (!next || tick < next) next = tick;
  }
  if (!next) return -1;
  uint64_t left = next > now ? (next - now + MS - 1) / MS : 0;
  return left > 1000000 ? 1000000 : (int)left;
}

static void read_pending_reports(struct run *run) {
  for (struct pollfd pending = {run->control, POLLIN, 0}; run->control >= 0 && poll(&pending, 1, 0) > 0;)
    if (!read_report(run)) close(run->control), run->control = -1;
}

/* Returns 1 once the last child has been reaped. */
static int all_gone(struct run *run) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == ECHILD) return 1;
    if (pid <= 0) return 0;
    read_pending_reports(run); /* on a busy machine the whole run is over before we look for the first time */
    if (pid != run->engine) continue; /* or it was the stager, which has named init before it went */
    run->engine_gone = 1;
    if (run->outcome.started_ns || run->stopping) continue;
    blame(run, 0, "engine ended before init", WIFSIGNALED(status) ? "by a signal" : "");
    kill_everything(run); /* whoever waits for it would wait for ever */
  }
}

static void conclude(struct run *run);

static void answer(struct run *run) {
  size_t size;
  char *line = status_line(&run->outcome, &size);
  run->answered = 1;
  /* init says that it starts the command before it does: without that word another way is open to the client of a pool. */
  if (run->warm_directory && !run->outcome.started_ns && run->outcome.cause == CAUSE_SETUP) return free(line), warm_refuse(&run->warm);
  if (!line) return; /* the client sees the end of the connection and says what it knows */
  warm_reply(&run->warm, status_exit_code(&run->outcome), line, size);
  free(line);
}

/* Once init has reported the end nothing is left inside but itself: the client need not wait until its walls are taken down. */
static void answer_early(struct run *run) {
  if (!has_client(run) || run->answered || !run->outcome.ended_ns || !warm_is_drained(&run->warm)) return;
  conclude(run);
  placeholders_remove(&run->placeholders); /* the client's next step may be to make what they stand for */
  answer(run);
}

/* What a client has not read yet, after everything else is over. */
static void hand_over_the_rest(struct run *run) {
  while (!run->answered || warm_is_busy(&run->warm)) {
    struct pollfd watched[WARM_POLLS];
    if (!run->answered && warm_is_drained(&run->warm)) answer(run);
    if (!warm_is_busy(&run->warm)) continue;
    warm_watch(&run->warm, watched);
    if (poll(watched, WARM_POLLS, -1) < 0 && errno != EINTR) return;
    warm_relay(&run->warm, watched);
  }
}

static void part_from_client(struct run *run) {
  drop_stdio(run); /* refused before anybody had them: they would never be drained */
  if (!run->answered) placeholders_remove(&run->placeholders);
  hand_over_the_rest(run);
  warm_linger(&run->warm);
}

static void watch_run(struct run *run) {
  while (!all_gone(run)) {
    struct pollfd watched[6 + WARM_POLLS] = {
        {run->signals, POLLIN, 0}, {run->control, POLLIN, 0}, {run->leash, POLLIN, 0}, {run->errors, POLLIN, 0}};
    terminal_watch(&run->terminal, &watched[4]);
    warm_watch(&run->warm, &watched[6]);
    if (poll(watched, 6 + WARM_POLLS, patience(run)) < 0 && errno != EINTR) {
      blame(run, errno, "launch: poll", "");
      kill_everything(run);
    }
    if (watched[1].revents && !read_report(run)) close(run->control), run->control = -1;
    if (watched[0].revents) read_signals(run);
    if (watched[2].revents) read_leash(run);
    if (watched[3].revents) read_errors(run);
    terminal_relay(&run->terminal, &watched[4]);
    relay_warm(run, &watched[6]);
    look_at_limits(run);
    answer_early(run);
  }
  read_pending_reports(run);
  if (run->errors >= 0) read_errors(run);
}

/* ---- the end ---- */

static void take_usage_of_children(struct outcome *outcome) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  outcome->cpu_us = (long long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  outcome->peak_bytes = (long long)usage.ru_maxrss * 1024;
}

static void take_usage_of_group(struct outcome *outcome, int group) {
  struct cgroup_usage usage;
  cgroup_read_usage(group, &usage);
  /* Kills of the host's own OOM killer are counted too, but then our limit was never met. */
  outcome->oom_kills = usage.oom > 0 ? usage.oom_kill : usage.oom_kill < 0 ? -1 : 0;
  outcome->pids_refused = usage.pids_max;
  outcome->throttled_us = usage.throttled_usec;
  if (usage.pids_peak > 0) outcome->peak_pids = usage.pids_peak;
  if (usage.memory_peak > 0) outcome->peak_bytes = usage.memory_peak;
}

/* A memory kill is told by the kernel's counter, never by a signal number. */
static int was_out_of_memory(const struct outcome *outcome) {
  return outcome->oom_kills > 0 && (outcome->wait_status == -1 || (WIFSIGNALED(outcome->wait_status) && WTERMSIG(outcome->wait_status) == SIGKILL));
}

static void conclude(struct run *run) {
  struct outcome *outcome = &run->outcome;
  if (run->answered) return;
  terminal_finish(&run->terminal);
  if (!outcome->ended_ns) {
    outcome->ended_ns = now_ns();
    take_usage_of_children(outcome);
  }
  if (run->cgroup >= 0) take_usage_of_group(outcome, run->cgroup);
  if (run->watching && run->watchdog.peak > outcome->peak_bytes) outcome->peak_bytes = run->watchdog.peak;
  if (run->watching && run->watchdog.threads > outcome->peak_pids) outcome->peak_pids = run->watchdog.threads;
  if (outcome->cause == CAUSE_EXIT && was_out_of_memory(outcome)) outcome->cause = CAUSE_MEMORY;
  if (outcome->cause == CAUSE_EXIT && outcome->wait_status == -1) blame(run, 0, "sandbox ended without a report", "");
}

static char **read_words(struct run *run) {
  size_t size, count = 0;
  char *bytes = read_all(FD_COMMAND, COMMAND_BYTES_MAX, &size);
  if (!bytes) refuse(run, "launch: read command", "");
  close(FD_COMMAND);
  if (size == 0 || bytes[size - 1]) errno = EINVAL, refuse(run, "launch: read command", "");
  for (size_t i = 0; i < size; i++) count += bytes[i] == 0;
  char **words = calloc(count + 1, sizeof *words);
  if (!words) refuse(run, "launch: memory", "");
  for (size_t i = 0; i < count; i++, bytes += strlen(bytes) + 1) words[i] = bytes;
  return words;
}

static void parse_arguments(struct run *run, int argc, char **argv) {
  int at = 1;
  if (at + 1 < argc && strcmp(argv[at], "--id") == 0) {
    errno = EINVAL;
    if (!is_run_id(argv[at + 1])) refuse(run, "launch: run id", argv[at + 1]);
    copy_text(run->id, sizeof run->id, argv[at + 1]);
    at += 2;
  }
  if (at + 1 < argc && strcmp(argv[at], "--framed") == 0) {
    run->framed = argv[at + 1];
    at += 2;
  }
  errno = EINVAL;
  if (at + 2 == argc && !run->framed && strcmp(argv[at], "--warm") == 0) run->warm_directory = argv[at + 1];
  else if (at == argc) run->command = read_words(run);
  else if (at + 1 < argc && strcmp(argv[at], "--") == 0) run->command = argv + at + 1;
  else refuse(run, "launch: usage", "launch [--id ID] [--framed output|all] [--warm DIRECTORY | -- COMMAND [ARG...]]");
}

static int print_landlock_abi(void) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  printf("%ld\n", abi < 0 ? 0 : abi);
  return 0;
}

static void begin(struct run *run) {
  /* Field by field: the whole is large, mostly zero, and stays untouched where nothing needs it. */
  run->records = run->record = run->cgroup_parent = run->cgroup = run->control = run->errors = run->signals = -1;
  run->status = run->leash = -1;
  run->terminal = (struct terminal){.master = -1, .input = -1};
  run->warm = (struct warm)WARM_NONE;
  for (int i = 0; i < 3; i++) run->stdio[i] = i;
  run->outcome = (struct outcome){.wait_status = -1, .begun_ns = now_ns(), .oom_kills = -1, .pids_refused = -1, .throttled_us = -1};
  snprintf(run->id, sizeof run->id, "%lx%d", (unsigned long)now_ns() & 0xffffffffff, getpid());
}

/* Before anything is made: what comes from the caller's side, and not from a plan. */
static void stand_apart(struct run *run) {
  umask(022);
  take_signals(run);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) refuse(run, "launch: subreaper", "");
}

static _Noreturn void carry_out(struct run *run) {
  require_walls(run);
  read_limits(run);
  find_init(run);
  open_record(run);
  prepare_warm(run);
  make_placeholders(run);
  name_group(run);
  write_record(run); /* before the group exists: a record may name too much, never too little */
  make_group(run);
  start_stager(run);
  watch_run(run);
  conclude(run);
  finish(run);
}

static struct run run; /* too big for the stack of a constrained caller */

void launch_here(const struct launch_call *call) {
  begin(&run);
  run.caller = call;
  run.file = *call->file;
  run.command = call->command;
  run.env = call->env;
  if (sys_close_range(FD_LAUNCH_FILE, ~0u) < 0) refuse(&run, "launch: close_range", "");
  stand_apart(&run);
  carry_out(&run);
}

int launch_program(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--landlock-abi") == 0) return print_landlock_abi();
  begin(&run);
  run.env = environ;
  run.status = is_open(FD_STATUS) ? FD_STATUS : -1;
  parse_arguments(&run, argc, argv);
  clean_descriptors(&run);
  stand_apart(&run);
  take_client(&run);
  read_launch_file(&run);
  carry_out(&run);
}
