/* The stager (sandbox/root-fs.h) is cloned into the cgroup, with the launch file and the command in sealed memory. */
#include "runner/run.h"

#include "lib/passed-signals.h"
#include "lib/sealed-memory.h"
#include "lib/text.h"
#include "sandbox/idmap.h"
#include "sandbox/network.h"
#include "sandbox/root-fs.h"

#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

int run_sealed(struct run *run, const char *bytes, size_t size, const char *what) {
  int fd = memory_sealed(bytes, size, what);
  if (fd < 0) run_refuse(run, "launch: memfd", what);
  return fd;
}

static int sealed_command(struct run *run) {
  size_t size;
  if (run->warm.is_on) return run_sealed(run, "0\0000\0000", sizeof "0\0000\0000", "command"); /* init asks for it */
  if (run->command.block) return run_sealed(run, run->command.block, run->command.size, "command");
  char *bytes = command_block(run->caller.call->command, run->caller.call->env, run->caller.umask, &size);
  if (!bytes) run_refuse(run, "launch: memory", "");
  return run_sealed(run, bytes, size, "command");
}

/* Into the cgroup by clone3; where it answers ENOSYS the child waits at a gate until it has been moved. */
static pid_t clone_into_group(struct run *run) {
  struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)run->host.cgroup};
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
  int moved = child < 0 ? -1 : cgroup_set(run->host.cgroup, "cgroup.procs", text);
  if (moved == 0) moved = write(gate[1], &byte, 1) == 1 ? 0 : -1;
  close(gate[0]), close(gate[1]);
  if (moved != 0 && child > 0) kill(child, SIGKILL);
  return moved == 0 ? child : -1;
}

static void limit_processors(struct run *run) {
  struct entry entry;
  uint64_t count;
  cpu_set_t all, some;
  if (!launchfile_find(&run->file, V_AFFINITY, &entry)) return;
  errno = EINVAL;
  if (parse_number(entry.word[0], CPU_SETSIZE, &count) < 0 || count == 0) run_refuse(run, "launch: affinity", entry.word[0]);
  if (sched_getaffinity(0, sizeof all, &all) < 0) run_refuse(run, "launch: affinity", "");
  if ((uint64_t)CPU_COUNT(&all) <= count) return; /* inside another sandbox, whose filter refuses the call */
  CPU_ZERO(&some);
  /* Starting at a place that differs from run to run spreads the load of many sandboxes. */
  for (int i = 0, cpu = getpid(); i < CPU_SETSIZE && count > 0; i++, cpu++)
    if (CPU_ISSET(cpu % CPU_SETSIZE, &all)) CPU_SET(cpu % CPU_SETSIZE, &some), count--;
  if (sched_setaffinity(0, sizeof some, &some) < 0) run_refuse(run, "launch: affinity", entry.word[0]);
}

static _Noreturn void become_stager(struct run *run, struct stage *stage) {
  sigset_t passed; /* blocked up to init; the command's process unblocks all */
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigemptyset(&passed);
  add_passed_signals(&passed);
  sigaction(SIGPIPE, &standard, NULL);
  sigaction(SIGXFSZ, &standard, NULL);
  sigprocmask(SIG_SETMASK, &passed, NULL);
  limit_processors(run);
  stage_and_exec(stage);
}

/* bin/net lies in the directory of bin/init. Where we are root it gets an id that neither we nor the sandbox (FIRST_FRESH_ID + our pid) have. */
static struct net_helper_start net_helper_of(const struct run *run, char program[static PATH_MAX]) {
  const char *slash = strrchr(run->init, '/');
  int length = slash ? (int)(slash - run->init) + 1 : 0;
  int is_long = snprintf(program, PATH_MAX, "%.*snet", length, run->init) >= PATH_MAX;
  return (struct net_helper_start){is_long ? NULL : program, -1, -1, -1, -1, getuid() == 0 ? NET_HELPER_ID + (uid_t)getpid() : 0};
}

/* Held, it would hide from the terminator that the helper has ended. */
static void drop_terminator(struct run *run) {
  if (run->net.terminator >= 0) close(run->net.terminator);
  run->net.terminator = -1;
}

/* The owner of the run may speak to its helper: by a socket next to the record of the run. */
static int listen_for_grants(struct run *run) {
  struct entry grants;
  if (!launchfile_find(&run->file, V_NET_GRANTS, &grants)) return -1;
  int fd = run->host.records < 0 ? -1 : record_listen(run->host.records, run->id);
  if (fd < 0) run_refuse(run, "launch: socket of the network", run->id);
  run->net.has_grants = 1;
  return fd;
}

static int start_net_helper(struct run *run, int control) {
  char program[PATH_MAX];
  struct net_helper_start start = net_helper_of(run, program);
  if (!start.program) errno = ENAMETOOLONG, run_refuse(run, "launch: find helpers", "net");
  start.launch_file = run_sealed(run, run->file.bytes, run->file.size, "launch-file");
  start.control = control;
  start.terminator = run->net.terminator;
  start.grants = listen_for_grants(run);
  int inside = net_helper_start(&run->net, &start);
  if (inside < 0) run_refuse(run, "launch: net helper", program);
  close(start.launch_file);
  if (start.grants >= 0) close(start.grants); /* held, it would take clients after the end of the helper */
  drop_terminator(run);
  return inside;
}

void run_serve_names(struct run *run) {
  char program[PATH_MAX];
  struct net_helper_start start = net_helper_of(run, program);
  if (start.program) net_helper_serve_names(&run->net, &start);
}

void run_drop_stdio(struct run *run) {
  for (int i = 0; i < 3; i++) {
    if (run->stdio.own[i] > 2) close(run->stdio.own[i]);
    run->stdio.own[i] = i;
  }
}

/* Only the host reads these, most of a plan. A verb that is not listed goes inside: a forgotten one leaves no wall out. */
static int is_for_host(enum verb verb) {
  static const enum verb verbs[] = {V_AT, V_CONTENT, V_APART, V_STEP, V_KEY, V_PROTECT, V_HOME, V_BIND, V_FILE, V_REASON, V_DENIAL, V_RESULT, V_VARIABLE};
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (verbs[i] == verb) return 1;
  return 0;
}

/* The authorization for the operator's proxy is for the helper alone. */
static char *put_inside(char *to, const struct entry *entry) {
  size_t size = (size_t)(entry->end - entry->start);
  memcpy(to, entry->start, size);
  if (entry->verb == V_NET_UPSTREAM) memset(to + (entry->word[2] - entry->start), '*', strlen(entry->word[2]));
  return to + size;
}

static int seal_for_inside(struct run *run) {
  struct entry entry;
  size_t position = 0;
  char *copy = malloc(run->file.size), *end = copy;
  if (!copy) run_refuse(run, "launch: memory", "");
  memcpy(end, LAUNCH_FILE_MAGIC, sizeof LAUNCH_FILE_MAGIC), end += sizeof LAUNCH_FILE_MAGIC;
  while (launchfile_next(&run->file, &position, &entry))
    if (!is_for_host(entry.verb)) end = put_inside(end, &entry);
  memcpy(end, "end", sizeof "end"), end += sizeof "end";
  int fd = run_sealed(run, copy, (size_t)(end - copy), "launch-file");
  free(copy);
  return fd;
}

/* The stager's end; -1 where the zones are in the plan. */
static int open_zones(struct run *run) {
  int ends[2];
  if (!run->warm.is_blank) return -1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) run_refuse(run, "launch: socketpair", "");
  run->warm.zones = ends[0];
  return ends[1];
}

void run_start(struct run *run) {
  int control[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) run_refuse(run, "launch: socketpair", "");
  if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0) run_refuse(run, "launch: pipe", "");
  /* High numbers: the stager places them at 0-8 and must not overwrite one before it is placed. */
  struct stage stage = {.file = &run->file,
                        .launch_file = seal_for_inside(run),
                        .command = sealed_command(run),
                        .control = control[1],
                        .errors = errors[1],
                        .layer = run->layer.fd,
                        .init = run->init,
                        .stdio = {run->stdio.own[0], run->stdio.own[1], run->stdio.own[2]},
                        .zones = open_zones(run),
                        .network = -1,
                        .launch = getpid(),
                        .layer_id = run->layer.id,
                        .id = run->id};
  int network = network_is_restricted(&run->file) ? start_net_helper(run, control[1]) : -1;
  stage.network = network;
  int *fds[] = {&stage.launch_file, &stage.command, &stage.control, &stage.errors, &stage.stdio[0], &stage.stdio[1], &stage.stdio[2], &stage.network, &stage.zones};
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
    if (*fds[i] < 0) continue;
    *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 32);
    if (*fds[i] < 0) run_refuse(run, "launch: descriptor", "");
  }
  run->engine.pid = run->engine.stager = run->host.cgroup >= 0 ? clone_into_group(run) : fork();
  if (run->engine.pid < 0) run_refuse(run, "launch: clone", "");
  if (run->engine.pid == 0) {
    close(control[0]); /* held, it would hide from us that launch is gone */
    if (run->warm.is_blank) close(run->warm.zones); /* likewise */
    become_stager(run, &stage);
  }
  close(control[1]), close(errors[1]);
  if (network >= 0) close(network); /* held, it would hide from the helper that the sandbox has failed */
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
    if (*fds[i] >= 0) close(*fds[i]);
  run_drop_stdio(run);
  run->engine.control.fd = control[0];
  run->engine.errors.fd = errors[0];
}
