/*
 * front: what is installed as `llm-do` and `llm-do-exec`.
 *
 * Theory of operation. Node starts slower than a sandbox, and most runs repeat an earlier one's options in the same
 * directory. So node leaves the launch file of a plan in the cache, with everything the plan was made from, and front looks
 * there first: if the words of the key are the same and every path on disk is still what it was, it starts launch with the
 * caller's command, environment and streams, or gives them to a sandbox of the pool that is ready (claim.h). For everything else (another verb, JSON, a plan that is not there or stale) it
 * becomes node, which knows everything. A run that ends in a way that needs words for people is told by node, too: front
 * hands it the outcome. So there is one implementation of every message and every decision; this one only remembers.
 */
#include "cached.h"
#include "claim.h"
#include "kernel.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

#ifndef LLM_DO_VERSION
#error "LLM_DO_VERSION: the version of package.json, part of every key"
#endif
#define AS_TEXT_OF(word) #word
#define AS_TEXT(word) AS_TEXT_OF(word)

enum { FD_LAUNCH_FILE = 3, FD_STATUS = 4, FD_LEASH = 5, FD_COMMAND = 6, FD_HIGH = 20 };
/* One JSON line of launch; its strings are bounded in chain.h and status.h. */
#define STATUS_MAX (16 << 10)

struct call {
  const char *root;  /* directory of the package */
  char **words;      /* what the caller wrote, without the verb */
  char **options;    /* first option word; options_end is the first that is none */
  char **options_end;
  const char *script; /* of -c */
  char **command;
};

/* ---- node ---- */

static void find_root(char *root, size_t room) {
  ssize_t length = readlink("/proc/self/exe", root, room - 1);
  root[length < 0 ? 0 : length] = 0;
  for (int up = 0; up < 2; up++) { /* ROOT/bin/llm-do */
    char *slash = strrchr(root, '/');
    if (slash) *slash = 0;
  }
}

static size_t count(char **words) {
  size_t n = 0;
  while (words[n]) n++;
  return n;
}

/* Becomes `node ROOT/dist/cli.js FIRST [SECOND] WORDS...`. */
static _Noreturn void become_node(const char *root, const char *first, const char *second, char **words) {
  static char script[4200];
  snprintf(script, sizeof script, "%s/dist/cli.js", root);
  char **argv = calloc(count(words) + 5, sizeof *argv);
  size_t n = 0;
  if (!argv) _exit(125);
  argv[n++] = "node";
  argv[n++] = script;
  if (first) argv[n++] = (char *)(uintptr_t)first;
  if (second) argv[n++] = (char *)(uintptr_t)second;
  memcpy(argv + n, words, count(words) * sizeof *words);
  execvp("node", argv);
  fprintf(stderr, "llm-do: error SETUP_FAILED: node cannot be started: %s\nllm-do: hint: put node 20.19 or newer on PATH\n", strerror(errno));
  _exit(125);
}

/* ---- the command line ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/*
 * Finds the command without knowing the options: after the first `--`, after a final `-c SCRIPT`, or at once when there are
 * no options. Where that is not how node reads the same words, node's key is another one, and nothing is found.
 */
static int split(struct call *call) {
  char **word = call->words;
  size_t total = count(word);
  call->options = word;
  for (call->options_end = word; *call->options_end && strcmp(*call->options_end, "--") != 0;) call->options_end++;
  if (*call->options_end) {
    call->command = call->options_end + 1;
  } else if (total >= 2 && strcmp(word[total - 2], "-c") == 0) {
    static char *shell[4] = {"/bin/sh", "-c", NULL, NULL};
    call->options_end = word + total - 2;
    call->script = word[total - 1];
    shell[2] = word[total - 1];
    call->command = shell;
  } else {
    call->options_end = word;
    call->command = word;
    if (total && word[0][0] == '-') return -1;
  }
  return call->command[0] ? 0 : -1;
}

/* ---- the key ---- */

static int add_first_line(struct key *key, const char *path, const char *start) {
  char text[4096];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (length < 0) return key_add(key, "");
  text[length] = 0;
  char *line = text;
  while (line && strncmp(line, start, strlen(start)) != 0) line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
  if (!line) return key_add(key, "");
  line[strcspn(line, "\n")] = 0;
  return key_add(key, line);
}

static int add_link(struct key *key, const char *path) {
  char text[64];
  ssize_t length = readlink(path, text, sizeof text - 1);
  text[length < 0 ? 0 : length] = 0;
  return key_add(key, text);
}

/* No name more than a plan depends on: a key is written to a file, and DOCKER_PASSWORD is nobody's to write. */
static const char *const NAMES[] = {"PATH",          "HOME",          "XDG_CONFIG_HOME", "XDG_CACHE_HOME",      "XDG_RUNTIME_DIR",
                                    "SSH_AUTH_SOCK", "ENABLE_DOCKER", "DOCKER_TIMEOUT",  "DOCKER_MEMORY_LIMIT", "DOCKER_CPU_LIMIT"};
static const char PREFIX[] = "LLM_DO_EXEC_";

static int concerns_us(const char *variable) {
  if (strncmp(variable, PREFIX, sizeof PREFIX - 1) == 0) return 1;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (strncmp(variable, NAMES[i], strlen(NAMES[i])) == 0 && variable[strlen(NAMES[i])] == '=') return 1;
  return 0;
}

static int compare_words(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add_environment(struct key *key) {
  char *chosen[KEY_WORDS_MAX];
  size_t n = 0;
  for (char **variable = environ; *variable; variable++) {
    if (!concerns_us(*variable)) continue;
    if (n == KEY_WORDS_MAX) return -1;
    chosen[n++] = *variable;
  }
  qsort(chosen, n, sizeof *chosen, compare_words);
  int done = key_add_number(key, n);
  for (size_t i = 0; i < n && done == 0; i++) done = key_add(key, chosen[i]);
  return done;
}

static int add_words(struct key *key, char **from, char **to) {
  int done = key_add_number(key, (unsigned long long)(to - from));
  for (; from < to && done == 0; from++) done = key_add(key, *from);
  return done;
}

/* The same words in the same order as src/launch-cache/key.ts. */
static int make_key(struct key *key, const struct call *call) {
  char directory[4096];
  if (!getcwd(directory, sizeof directory)) return -1;
  return key_add(key, AS_TEXT(LLM_DO_VERSION)) || key_add(key, call->root) || key_add_number(key, geteuid()) || key_add_number(key, getegid()) ||
                 add_first_line(key, "/proc/sys/kernel/random/boot_id", "") || add_first_line(key, "/proc/self/cgroup", "0::") ||
                 add_first_line(key, "/proc/self/status", "CapEff:") || add_link(key, "/proc/self/ns/user") ||
                 add_link(key, "/proc/self/ns/mnt") || key_add(key, directory) || key_add(key, call->script ? "script" : "command") ||
                 key_add(key, call->command[0]) || add_words(key, call->options, call->options_end) || add_environment(key)
             ? -1
             : 0;
}

/* ---- the command's environment ---- */

struct variables {
  char **word;
  size_t count;
};

static size_t name_length(const char *variable) { return strcspn(variable, "="); }

static void put(struct variables *all, char *variable) {
  size_t length = name_length(variable);
  for (size_t i = 0; i < all->count; i++)
    if (name_length(all->word[i]) == length && memcmp(all->word[i], variable, length) == 0) {
      all->word[i] = variable;
      return;
    }
  all->word[all->count++] = variable;
}

static char *join(const char *name, const char *value) {
  char *variable = malloc(strlen(name) + strlen(value) + 2);
  if (variable) sprintf(variable, "%s=%s", name, value);
  return variable;
}

static void inherit(struct variables *all, const char *pattern) {
  size_t length = strlen(pattern);
  int is_prefix = length > 0 && pattern[length - 1] == '*';
  for (char **variable = environ; *variable; variable++)
    if (is_prefix ? strncmp(*variable, pattern, length - 1) == 0 : name_length(*variable) == length && strncmp(*variable, pattern, length) == 0)
      put(all, *variable);
}

static int compare_names(const void *a, const void *b) {
  const char *one = *(char *const *)a, *other = *(char *const *)b;
  size_t length = name_length(one), longest = name_length(other);
  int order = memcmp(one, other, length < longest ? length : longest);
  return order ? order : length < longest ? -1 : length > longest;
}

/* NULL when memory is short: then node does it. */
static char **command_environment(const struct launchfile *file) {
  struct variables all = {calloc(count(environ) + file->size, sizeof(char *)), 0};
  struct record record;
  size_t position = 0;
  while (all.word && launchfile_next(file, &position, &record)) {
    const char *value = record.verb == V_LOCALE ? getenv(record.word[0]) : NULL;
    char *variable = NULL;
    if (record.verb == V_INHERIT) inherit(&all, record.word[0]);
    if (record.verb != V_VARIABLE && record.verb != V_LOCALE) continue;
    if (!value || !*value) value = record.word[1];
    if (!*value && record.verb == V_LOCALE) continue;
    if (!(variable = join(record.word[0], value))) return NULL;
    put(&all, variable);
  }
  if (all.word) qsort(all.word, all.count, sizeof *all.word, compare_names);
  return all.word;
}

/* ---- the run ---- */

static int raise_fd(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_HIGH);
  close(fd);
  return high;
}

struct started {
  pid_t launch;
  int status; /* read end */
  int leash;  /* write end: launch ends everything when we are gone */
};

static int start_launch(const struct call *call, int file, char **env, struct started *run) {
  char path[4200];
  int status[2], leash[2];
  snprintf(path, sizeof path, "%s/bin/launch", call->root);
  char **argv = calloc(count(call->command) + 3, sizeof *argv);
  if (!argv || pipe2(status, O_CLOEXEC) < 0 || pipe2(leash, O_CLOEXEC) < 0) return -1;
  argv[0] = "launch";
  argv[1] = "--";
  memcpy(argv + 2, call->command, count(call->command) * sizeof *argv);
  int inherited[] = {raise_fd(file), raise_fd(status[1]), raise_fd(leash[0])};
  run->status = raise_fd(status[0]);
  run->leash = raise_fd(leash[1]);
  posix_spawn_file_actions_t actions;
  int failed = posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3 && !failed; i++) failed = posix_spawn_file_actions_adddup2(&actions, inherited[i], FD_LAUNCH_FILE + i);
  if (!failed) failed = posix_spawn(&run->launch, path, &actions, NULL, argv, env);
  for (int i = 0; i < 3; i++) close(inherited[i]);
  free(argv);
  return failed ? -1 : 0;
}

/* Waits for launch; every signal that is meant for us is meant for it. */
static int wait_for(const struct started *run, const sigset_t *signals) {
  int status, signal;
  for (;;) {
    pid_t ended = waitpid(run->launch, &status, WNOHANG);
    if (ended == run->launch) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ended < 0) return -1;
    if (sigwait(signals, &signal) == 0 && signal != SIGCHLD) kill(run->launch, signal);
  }
}

static long long number_after(const char *json, const char *key) {
  const char *at = strstr(json, key);
  return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* Nothing to say: the command ended by itself, no limit was met, and no path among its words may deserve a hint. */
static int needs_no_words(const char *json, char **command) {
  if (strncmp(json, "{\"cause\":\"exit\"", 15) != 0) return 0;
  long long status = number_after(json, "\"waitStatus\":");
  if (status < 0 || (status & 0x7f)) return 0;
  if (number_after(json, "\"oomKills\":") > 0 || number_after(json, "\"pidsRefused\":") > 0) return 0;
  for (char **word = command + 1; status != 0 && command[0] && *word; word++)
    if (**word == '/') return 0;
  return 1;
}

static size_t read_status(int fd, char *text, size_t room) {
  size_t used = 0;
  ssize_t got;
  while (used + 1 < room && ((got = read(fd, text + used, room - used - 1)) > 0 || (got < 0 && errno == EINTR)))
    if (got > 0) used += (size_t)got;
  text[used] = 0;
  return used;
}

/* The whole story is node's to tell: it plans again and explains this outcome. */
static _Noreturn void explain(const struct call *call, const char *json) {
  char number[16];
  int told = memfd_create("outcome", 0);
  if (told < 0 || write(told, json, strlen(json)) != (ssize_t)strlen(json) || lseek(told, 0, SEEK_SET) < 0) _exit(125);
  snprintf(number, sizeof number, "%d", told);
  become_node(call->root, "explain-outcome", number, call->words);
}

static _Noreturn void conclude(const struct call *call, int status, const char *json, const sigset_t *before) {
  if (status >= 0 && needs_no_words(json, call->command)) _exit(status);
  sigprocmask(SIG_SETMASK, before, NULL);
  explain(call, json);
}

static void run_cached(const struct call *call, const char *directory) {
  static struct key key;
  static char json[STATUS_MAX];
  struct launchfile file;
  struct started run;
  sigset_t signals, before;
  if (make_key(&key, call) < 0) return;
  int fd = cached_open(directory, &key, &file);
  char **env = fd < 0 ? NULL : command_environment(&file);
  if (!env) return;
  sigemptyset(&signals);
  for (const int *signal = (const int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0}; *signal; signal++) sigaddset(&signals, *signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  int status = -1;
  enum claim claimed = claim_run(&file, call->command, env, &signals, &status, json, sizeof json);
  if (claimed != CLAIM_NONE) conclude(call, claimed == CLAIM_DONE ? status : -1, json, &before);
  if (start_launch(call, fd, env, &run) < 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    return;
  }
  status = wait_for(&run, &signals);
  read_status(run.status, json, sizeof json);
  conclude(call, status, json, &before);
}

static int cache_directory(char *path, size_t room) {
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (!home || home[0] != '/') return -1; /* node would have to ask the account database */
  int length = base && base[0] == '/' ? snprintf(path, room, "%s/llm-do/launch", base) : snprintf(path, room, "%s/.cache/llm-do/launch", home);
  return (size_t)length < room ? 0 : -1;
}

/* Standard streams that the caller has closed must not become one of our pipes. */
static int fill_streams(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return -1;
  return 0;
}

int main(int argc, char **argv) {
  static char root[4096], directory[4096];
  find_root(root, sizeof root);
  int is_exec = argc > 0 && strcmp(base_name(argv[0]), "llm-do-exec") == 0;
  char **rest = argv + (argc > 0);
  if (!is_exec && (!rest[0] || strcmp(rest[0], "exec") != 0)) become_node(root, NULL, NULL, rest);
  struct call call = {.root = root, .words = is_exec ? rest : rest + 1};
  if (fill_streams() == 0 && cache_directory(directory, sizeof directory) == 0 && split(&call) == 0) run_cached(&call, directory);
  become_node(root, "exec", NULL, call.words);
}
