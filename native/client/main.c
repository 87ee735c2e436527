/*
 * client: what is installed as `llm-do` and `llm-do-exec`.
 *
 * Theory of operation. Node starts slower than a sandbox, and most runs repeat an earlier one's options in the same
 * directory. So node leaves the launch file of a plan in the cache, with everything the plan was made from, and the client looks
 * there first: if the words of the key are the same and every path on disk is still what it was, it starts launch with the
 * caller's command, environment and streams, or gives them to a sandbox of the pool that is ready (client/pool-client.h). For everything
 * else (another verb, a plan that is not there or stale) it becomes node, which knows everything. Where JSON was asked for, it
 * reads what the command prints (client/capture.h) and writes the result (client/result.h): the runner says how the run ended, the plan has the words.
 * A run that needs an explanation is reported by Node, to which the client hands the outcome.
 */
#include "client/audit-log.h"
#include "client/call.h"
#include "client/failed-run.h"
#include "client/pool-client.h"
#include "runner/launch.h"
#include "client/node-call.h"
#include "lib/any-directory.h"
#include "lib/files.h"
#include "lib/sealed-memory.h"
#include "lib/syscalls.h"
#include "lib/pages.h"
#include "lib/programs.h"
#include "lib/passed-signals.h"
#include "client/find-node.h"
#include "client/help-text.h"
#include "client/layer-end.h"
#include "client/result.h"
#include "client/rules.h"
#include "runner/freshness.h"
#include "runner/stream-check.h"
#include "runner/streams.h"
#include "client/environment.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Above all descriptors that launch is given. */
#define FD_HIGH 20
/* One JSON line of launch; its strings are bounded in lib/init-protocol.h and lib/status.h. */
#define STATUS_MAX ((64 << 10) + 2 * SAID_MAX)

/* ---- node ---- */

static void find_root(char *root, size_t room) {
  ssize_t length = readlink("/proc/self/exe", root, room - 1);
  root[length < 0 ? 0 : length] = 0;
  for (int up = 0; up < 2; up++) { /* ROOT/bin/llm-do */
    char *slash = strrchr(root, '/');
    if (slash) *slash = 0;
  }
}

static _Noreturn void refuse_node(const char *what, const char *why, const char *hint) {
  fprintf(stderr, "llm-do: error SETUP_FAILED: %s: %s\nllm-do: hint: %s\n", what, why, hint);
  _exit(125);
}

/* Node has these descriptors open at its start and needs these for a run. With fewer it ends in the middle, without a helpful message. */
#define DESCRIPTORS_LEAST 64
#define DESCRIPTORS_GOOD 1024

static void need_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_LEAST) return;
  limit.rlim_cur = limit.rlim_max < DESCRIPTORS_GOOD ? limit.rlim_max : DESCRIPTORS_GOOD; /* the command's own is set by its plan */
  if (limit.rlim_cur >= DESCRIPTORS_LEAST && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  fprintf(stderr, "llm-do: error SETUP_FAILED: no more than %llu files may be open here, and %d are needed\nllm-do: hint: ulimit -n %d\n",
          (unsigned long long)limit.rlim_max, DESCRIPTORS_LEAST, DESCRIPTORS_GOOD);
  _exit(125);
}

/* Only letters: what a caller types must not lead anywhere else. */
static int is_verb(const char *word) { return word && word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyz") == strlen(word); }

/* The program of the verb alone, where it has one (VERBS_ALONE of scripts/build.mjs): node starts it in half the time of the whole. */
static void choose_script(const char *root, const struct node_call *handover, char *script, size_t room) {
  const char *verb = handover->first ? handover->first : handover->words[0];
  if (is_verb(verb) && (size_t)snprintf(script, room, "%s/dist/cli-%s.cjs", root, verb) < room && access(script, R_OK) == 0) return;
  snprintf(script, room, "%s/dist/cli.cjs", root);
}

/* Becomes node with ROOT/dist/cli.cjs or that of the verb; see client/node-call.h for how it gets the call. */
static _Noreturn void become_node(const char *root, const struct node_call *handover) {
  static char script[4200], node[4096], why[4096];
  const struct node_search search = {root, getenv("PATH"), handover->words};
  need_descriptors();
  choose_script(root, handover, script, sizeof script);
  if (node_find(&search, node, sizeof node, why, sizeof why) < 0)
    refuse_node("no node that only root or you can change", why, "put node 20.19 or newer into a directory of PATH outside the project");
  node_call_exec(node, script, handover);
  refuse_node(node, strerror(errno), "look at what the message names; node is given the call by a memfd, which needs a file size limit (ulimit -f) above 0");
}

/* ---- the command line ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ---- the run ---- */

struct run {
  struct call *call;
  struct launchfile file;
  int fd; /* of the launch file; -1: it is in memory alone, filled from `plan` for `places` */
  struct launchfile plan;
  const struct places *places; /* NULL: the plan had no slots */
  char **env;
  struct capture capture;
  struct streams streams; /* the caller's, as they were: for a warm run only we can restore them */
  const char *decided_by; /* a rule of a worker, or `policy` */
  sigset_t before; /* the caller's signal mask */
  int signals;     /* signalfd: what comes is passed on */
  int parent;      /* pidfd: the run ends with it; -1 where the plan does not say so */
  struct sandbox sandbox; /* of a pool */

  pid_t launch;
};

/* The plan for a launch that is started as a process, above all descriptors that it is given; -1 with errno. */
static int plan_descriptor(struct run *run) {
  if (run->fd < 0) run->fd = memory_sealed(run->file.bytes, run->file.size, "launch-file");
  return run->fd < 0 ? -1 : fd_above(run->fd, FD_HIGH);
}

/* Starts launch as a process, on descriptors 3 and 4. Returns our end of its socket, or -1. */
static int start_launch(struct run *run) {
  char path[4200], *argv[] = {"llm-do", "__launch", "--streams", "own", NULL}, *env[] = {NULL};
  int ends[2], file = plan_descriptor(run);
  snprintf(path, sizeof path, "%s/bin/llm-do", run->call->root);
  if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  int ours = fd_above(ends[0], FD_HIGH), theirs = fd_above(ends[1], FD_HIGH);
  posix_spawn_file_actions_t actions;
  int failed = ours < 0 || theirs < 0 || posix_spawn_file_actions_init(&actions);
  if (!failed) {
    failed = posix_spawn_file_actions_adddup2(&actions, file, LAUNCH_FILE_FD) || posix_spawn_file_actions_adddup2(&actions, theirs, RUN_FD) ||
             posix_spawn(&run->launch, path, &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
  }
  close(file);
  if (theirs >= 0) close(theirs);
  if (!failed) return ours;
  return close_with(ours, -1);
}

/* Nothing of the run is left when launch has ended. */
static void wait_for_launch(const struct run *run) {
  while (waitpid(run->launch, NULL, 0) < 0 && errno == EINTR) continue;
}

/* ---- signals ---- */

static sigset_t watched_signals(void) {
  static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGQUIT};
  sigset_t signals;
  sigemptyset(&signals);
  for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) sigaddset(&signals, watched[i]);
  add_passed_signals(&signals);
  return signals;
}

/* ---- its end ---- */

/* Three lines: what was captured, `recorded` or the descriptors of the audit log, what launch reported. */
static int hand_over(const struct run *run, const char *json, int is_recorded) {
  char captured[256], log[64] = "recorded";
  int fd = memfd_create("outcome", 0);
  if (fd < 0 || capture_hand_over(&run->capture, captured, sizeof captured) < 0) return -1;
  if (!is_recorded && audit_hand_over(log, sizeof log) < 0) return -1;
  return dprintf(fd, "%s\n%s\n%s", captured, log, json) < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -1 : fd;
}

/* Node explains this outcome: it plans again. */
static _Noreturn void explain(const struct run *run, const char *json, int is_recorded) {
  int fd = hand_over(run, json, is_recorded);
  if (fd < 0) {
    fprintf(stderr,
            "llm-do: error SETUP_FAILED: the command has run, and its end cannot be handed to node: %s\n"
            "llm-do: hint: it goes by a file in memory: raise the limits of file sizes (ulimit -f) and of open files (ulimit -n)\n",
            strerror(errno));
    _exit(125);
  }
  become_node(run->call->root, &(struct node_call){"exec", run->call->words, fd, run->call->parent});
}

/* A reader that went away is not our failure. Any other error is reported by Node, after it has tried. */
static void print_json(const struct run *run, const struct result *result) {
  int error = result_write(result, 1);
  if (error == 0 || error == EPIPE) result_leave(&result->ending, &run->before);
}

/* Signals that came when the run was already over. */
static void forget_signals(void) {
  sigset_t signals = watched_signals();
  while (sigtimedwait(&signals, NULL, &(struct timespec){0, 0}) > 0) continue;
}

/* Prints the line of --log. */
static void print_isolation(const struct launchfile *file) {
  struct entry entry;
  if (launchfile_find(file, V_ISOLATION, &entry)) dprintf(2, "%s\n", entry.word[0]);
}

/* Returns when the result cannot be written. */
static void end_by_ourselves(const struct run *run, const struct result *result) {
  int status = result->ending.exit_status;
  signal(SIGPIPE, SIG_IGN);
  print_isolation(&run->file);
  if (status != 0) failed_run_keep(run->call, &run->file, status);
  if (run->capture.is_on) print_json(run, result);
  else if (result_print(result, STDERR_FILENO) == 0) result_leave(&result->ending, &run->before);
}

/* Are changes to copy-on-write zones, if there are any, applied? */
static int is_settled(const struct run *run, struct result *result) {
  static char applied[256];
  if (!result_has_layer(result)) return 1;
  if (result->ending.exit_code != 0 || layer_apply_at_end(result, run->call->root, applied, sizeof applied) < 0) return 0;
  result->applied = applied;
  return 1;
}

static _Noreturn void conclude(struct run *run, enum claim claimed, const char *json) {
  struct result result = {.file = &run->file, .status = json, .command = run->call->command, .capture = &run->capture, .decided_by = run->decided_by};
  streams_restore(&run->streams);
  int is_known = claimed == CLAIM_DONE && result_read(&result) == 0 && result_is_known(&result), is_audited = audit_is_on(&run->file);
  /* The usual end of a run for people needs no more than that. */
  if (is_known && result.ending.reason == REASON_EXIT && !run->capture.is_on && !is_audited && !result_needs_words(&result) && is_settled(run, &result)) end_by_ourselves(run, &result);
  capture_finish(&run->capture);
  forget_signals();
  sigprocmask(SIG_SETMASK, &run->before, NULL);
  if (!is_known || result_has_layer(&result) || !result_is_plain(&result) || result_needs_words(&result)) explain(run, json, 0);
  int is_recorded = is_audited && audit_append(&result) == 0;
  if (is_recorded || !is_audited) end_by_ourselves(run, &result);
  explain(run, json, is_recorded);
}

/* An ignored SIGCHLD would reap launch before we ask for its end. */
static int take_signals(struct run *run) {
  sigset_t signals = watched_signals();
  if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigprocmask(SIG_BLOCK, &signals, &run->before) < 0) return -1;
  run->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  return run->signals < 0 ? -1 : 0;
}

/* As src/launch-cache/places.ts has them: the caller's cache directory, then where the secret of the seals is (lib/seal.c). */
enum cache { CACHE_OF_CALLER, CACHE_OF_RUNTIME, CACHE_OF_SYSTEM, CACHES };

static int below(const char *base, const char *path, char *text, size_t room) {
  return base && base[0] == '/' && (size_t)snprintf(text, room, "%s%s/launch", base, path) < room ? 0 : -1;
}

static int cache_directory(enum cache which, char *path, size_t room) {
  const char *cache = getenv("XDG_CACHE_HOME");
  char user[64];
  switch (which) {
    case CACHE_OF_CALLER: return cache && cache[0] == '/' ? below(cache, "/llm-do", path, room) : below(getenv("HOME"), "/.cache/llm-do", path, room);
    case CACHE_OF_RUNTIME: return geteuid() == 0 ? -1 : below(getenv("XDG_RUNTIME_DIR"), "/llm-do", path, room);
    case CACHE_OF_SYSTEM: break;
    case CACHES: return -1;
  }
  snprintf(user, sizeof user, "/run/user/%u", (unsigned)geteuid());
  return below(geteuid() == 0 ? "/run" : user, "/llm-do", path, room);
}

static int open_cached(const struct key *key, struct launchfile *file) {
  char directory[4096];
  int fd = -1;
  for (enum cache cache = 0; fd < 0 && cache < CACHES; cache++)
    if (cache_directory(cache, directory, sizeof directory) == 0) fd = cached_open(directory, key, file);
  return fd;
}

static int find_places(const struct call *call, struct places *places) {
  if (places_begin(places)) return -1;
  for (size_t i = 0; i < call->places; i++)
    if (places_add(places, call->place[i].source, call->place[i].length)) return -1;
  return 0;
}

static int is_usable(const struct run *run, const struct launchfile *file) { return variables_are_unset(file) && program_is_shown(&run->call->program, file); }

/* The plan that serves every directory, filled in for those of this run. */
static int fill_plan(struct run *run, const struct key *key) {
  static _Alignas(PAGE_OF_ITS_OWN) struct places places;
  int fd = open_cached(key, &run->plan);
  if (fd < 0) return -1;
  close(fd);
  if (find_places(run->call, &places) < 0 || places_unfit(&places, &run->plan, run->call->command[0])) return -1;
  if (is_usable(run, &run->plan)) run->sandbox = claim_blank(&run->plan, &places); /* it begins with the directories meanwhile */
  if (places_fill(&places, &run->plan, &run->file) < 0) return give_up_sandbox(&run->sandbox), -1;
  run->places = &places;
  return 0;
}

/* Returns 0, or -1 where there is none. */
static int open_plan(struct run *run, enum key_variables variables) {
  static _Alignas(PAGE_OF_ITS_OWN) struct key own, any;
  run->fd = -1, run->places = NULL;
  if (call_key(run->call, variables, &own) < 0) return -1;
  if (call_key_for_any(run->call, variables, &own, &any) == 0 && fill_plan(run, &any) == 0) return 0;
  run->fd = open_cached(&own, &run->file);
  return run->fd < 0 ? -1 : 0;
}

/* A parent that we still have was alive when its pidfd was opened; of one in another pid namespace (pid 0) there is none, which node says. */
static int watch_parent(struct run *run) {
  struct entry entry;
  run->parent = -1;
  if (!launchfile_find(&run->file, V_PARENT, &entry)) return 0;
  run->parent = sys_pidfd_open(run->call->parent);
  if (getppid() != run->call->parent) _exit(128 + SIGTERM); /* it has gone, and nothing was started yet */
  return run->parent < 0 ? -1 : 0;
}

static int find_plan(struct run *run) {
  int found = open_plan(run, KEY_FOR_ANY);
  if (run->call->given && run->call->given[0] && (found < 0 || !given_are_unknown(&run->file, run->call->given))) {
    if (run->fd >= 0) close(run->fd);
    give_up_sandbox(&run->sandbox);
    found = open_plan(run, KEY_BY_NAME);
  }
  if (found < 0 || !is_usable(run, &run->file)) return -1;
  if (!(run->decided_by = rules_let_run(&run->file, run->call->script, run->call->command))) return -1;
  if (audit_open(&run->file, run->call->command) < 0) return -1;
  if (!result_is_sound(&run->file) || capture_open(&run->capture, &run->file) < 0) return -1;
  if (run->sandbox.socket < 0) run->sandbox = claim_sandbox(&run->file, run->places ? &run->plan : NULL, run->places); /* all that follows it does not wait for */
  run->env = command_environment(&run->file, run->call->given);
  return run->env ? watch_parent(run) : -1;
}

static void on_ended(void *run, const char *json) { conclude(run, CLAIM_DONE, json); }

/* Children that a caller had before it became us would be waited for with those of the run. */
static int has_children(void) {
  siginfo_t ended;
  return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Node sees of it what it would see of a caller that has not tried. */
static void forget_run(const struct run *run) { sigprocmask(SIG_SETMASK, &run->before, NULL); }

static enum claim run_in_pool(const struct run *run, const struct claimant *claimant, char *json, size_t room) {
  return run->sandbox.socket < 0 ? CLAIM_NONE : run_claimed(&run->sandbox, claimant, json, room);
}

/*
 * Prints the plan's warnings before the command starts. The plan must hold: for another one node has other warnings. Returns -1 where it does
 * not; then nothing was printed.
 */
static int tell_warnings(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  if (!launchfile_find(file, V_WARNING, &entry)) return 0;
  if (!is_fresh(file)) return -1;
  while (launchfile_next_of(file, V_WARNING, &position, &entry)) dprintf(STDERR_FILENO, "%s\n", entry.word[0]);
  return 0;
}

/* Returns when nothing was started: node is next. */
static void run_cached(struct call *call) {
  static char json[STATUS_MAX];
  struct run run = {.call = call, .sandbox = {.socket = -1}};
  if (find_plan(&run) < 0 || take_signals(&run) < 0) return;
  if (tell_warnings(&run.file) < 0) return forget_run(&run);
  streams_note(&run.streams);
  struct claimant claimant = {&run.file, run.places ? &run.plan : NULL, call->command, run.env, run.signals, run.parent, &run.capture};
  enum claim claimed = run_in_pool(&run, &claimant, json, sizeof json);
  if (claimed != CLAIM_NONE) conclude(&run, claimed, json);
  /* A recorded run gets a separate launch: one in this process closes the log. */
  if (!run.capture.is_on && !audit_is_on(&run.file) && !has_children()) {
    launch_here(&(struct launch_call){&run.file, call->command, run.env, run.parent, on_ended, &run});
    return forget_run(&run); /* the plan is stale */
  }
  int launch = start_launch(&run);
  if (launch >= 0) {
    enum claim end = run_by(launch, &claimant, json, sizeof json);
    wait_for_launch(&run);
    if (end != CLAIM_NONE) conclude(&run, end, json);
  }
  forget_run(&run);
}

/* Launch refuses a path that is none, and node has the words for that. */
static int are_streams(void) { return stream_check(0) == 0 && stream_check(1) == 0 && stream_check(2) == 0; }

int client_main(int argc, char **argv) {
  static char root[4096];
  pid_t parent = getppid();
  signal(SIGXFSZ, SIG_IGN); /* a caller's limit of file sizes is an error to be reported, by node too */
  find_root(root, sizeof root);
  int is_exec = argc > 0 && strcmp(base_name(argv[0]), "llm-do-exec") == 0;
  char **rest = argv + (argc > 0);
  if (print_help(root, is_exec, rest)) return 0;
  if (!is_exec && (!rest[0] || strcmp(rest[0], "exec") != 0)) become_node(root, &(struct node_call){NULL, rest, -1, parent});
  static _Alignas(PAGE_OF_ITS_OWN) struct call call;
  call.root = root, call.parent = parent, call.words = is_exec ? rest : rest + 1;
  if (streams_fill() == 0 && are_streams() && call_split(&call) == 0) run_cached(&call);
  become_node(root, &(struct node_call){"exec", call.words, -1, parent});
}
