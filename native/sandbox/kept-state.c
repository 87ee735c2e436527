#include "sandbox/kept-state.h"

#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/launch-file.h"
#include "lib/report-failure.h"
#include "lib/sealed-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATE_MAX (1u << 20)
/* One more than a state has: then it is too large. Behind it there is room for what is dropped. */
#define READ_MAX (STATE_MAX + 1)
#define DROPPED (64 << 10)
/* As exec_in_take closes what is below. */
#define ABOVE 32
/* The sandbox's words about itself; src/policy/readers.ts refuses them to everyone, and so do we. */
#define RESERVED "LLM_DO_SANDBOX"
#define BASH_STARTS_WITH "BASH_ENV="
/* With a lower level bash takes a stdin that is a socket, as Node's pipes are, for a remote shell, and does not read that file. */
#define BASH_LEVEL "SHLVL=1"

/* ---- init's ---- */

static struct {
  char *bytes; /* NULL = no command has left one */
  size_t size;
  int ours, theirs; /* of a pair of sockets; theirs is the attendants' */
} kept = {.ours = -1, .theirs = -1};

static int open_sockets(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  kept.ours = fd_above(ends[0], ABOVE), kept.theirs = fd_above(ends[1], ABOVE);
  return kept.theirs < 0 ? -1 : 0;
}

static void replace(char *bytes, size_t size) {
  free(kept.bytes);
  kept.bytes = bytes, kept.size = size;
}

int kept_state_take(int is_reset) {
  char byte;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  if (kept.ours < 0 && open_sockets() < 0) return -1;
  while (message_receive(kept.ours, &byte, sizeof byte, MSG_DONTWAIT, fds, &count) == sizeof byte) {
    size_t size;
    char *bytes = count == 1 ? read_all(fds[0], STATE_MAX, &size) : NULL;
    for (int i = 0; i < count; i++) close(fds[i]);
    if (!bytes) return -1;
    replace(bytes, size);
  }
  if (is_reset) replace(NULL, 0);
  return 0;
}

/* ---- the bytes ---- */

/* "UMASK\n" NUL "DIRECTORY\n" NUL variables, each ended by NUL, NUL, then what only bash reads, which ends with WHOLE. */
struct parts {
  unsigned umask;
  char *directory; /* without its line end once split */
  char *variables; /* up to an empty one */
  char *shell;
  size_t shell_size, count;
};

#define WHOLE "LLM_DO_STATE=whole\n"

static char *take_line(char **at, const char *end, size_t *length) {
  char *line = *at, *nul = memchr(line, 0, (size_t)(end - line));
  *length = nul ? (size_t)(nul - line) : 0;
  if (*length < 2 || nul[-1] != '\n') return NULL;
  *at = nul + 1;
  return line;
}

/* Only reads. Returns 0, or -1 where the bytes are not a whole state. */
static int split(char *bytes, size_t size, struct parts *parts) {
  char *at = bytes, *end = bytes + size, umask[8] = "", *line;
  size_t length;
  if (!(line = take_line(&at, end, &length)) || length >= sizeof umask) return -1;
  memcpy(umask, line, length - 1);
  if (parse_mode(umask, &parts->umask) < 0 || parts->umask > 0777) return -1;
  if (!(parts->directory = take_line(&at, end, &length)) || parts->directory[0] != '/') return -1;
  parts->variables = at;
  for (parts->count = 0; at < end && *at; parts->count++) {
    char *nul = memchr(at, 0, (size_t)(end - at)), *equals = nul ? strchr(at, '=') : NULL;
    if (!equals || equals == at) return -1;
    at = nul + 1;
  }
  if (at >= end || parts->count == 0) return -1;
  parts->shell = at + 1, parts->shell_size = (size_t)(end - parts->shell);
  return memchr(parts->shell, 0, parts->shell_size) ? -1 : 0;
}

static int is_whole_for_bash(const struct parts *parts) {
  size_t mark = sizeof WHOLE - 1;
  return parts->shell_size >= mark && memcmp(parts->shell + parts->shell_size - mark, WHOLE, mark) == 0;
}

static int is_whole(char *bytes, size_t size, int with_functions) {
  struct parts parts;
  return split(bytes, size, &parts) == 0 && (with_functions ? is_whole_for_bash(&parts) : parts.shell_size == 0);
}

/* ---- a shell ---- */

/* Letters of options with which a shell runs LINE of -c LINE and nothing else. */
#define LETTERS "abcefhklmnouvxBCEHPT"

static int is_shell(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash ? slash + 1 : path, name) == 0;
}

static int is_cluster(const char *word) { return word[0] == '-' && word[1] && word[1 + strspn(word + 1, LETTERS)] == 0; }

/* Where LINE of `sh -c LINE` or `bash -eo pipefail -c LINE` is; NULL for any other program. */
static char **line_of(char **argv) {
  int has_line = 0;
  char **word = argv + 1;
  if (!is_shell(argv[0], "sh") && !is_shell(argv[0], "bash")) return NULL;
  for (; *word && is_cluster(*word); word++) {
    has_line |= strchr(*word, 'c') != NULL;
    if (strchr(*word, 'o') && word[1]) word++; /* the name of an option */
  }
  if (has_line && *word && strcmp(*word, "--") == 0) word++;
  return has_line && *word && (*word)[0] != '-' ? word : NULL;
}

/* By builtins and a program that the user's functions do not replace. An environment that env(1) does not print is marked as none. */
#define SAVE                                                                                                 \
  "{ command umask; command printf \"\\0\"; command pwd; command printf \"\\0\";"                           \
  " command -p env -0 || command printf \"x\\0\"; command printf \"\\0\";"
/* A user's option to end at the first failure does not count on the left of `||`. */
#define OUT " } 2>/dev/null >/proc/self/fd/60 || :"
#define SAVE_OF_SH SAVE OUT
#define SAVE_OF_BASH SAVE " shopt -p; declare -f; alias -p; set +o; command printf \"LLM_DO_STATE=whole\\n\";" OUT

/* Aliases and functions that it brings count from the next line on. */
#define RESTORE                                                                                                    \
  "\\. /proc/self/fd/62 2>/dev/null\n"                                                                            \
  "[[ ${LLM_DO_STATE-} == whole ]] || { \\trap - EXIT; "                                                         \
  "\\echo 'llm-do: the kept state cannot be read; --keep-state=reset forgets it' >&2; \\exit 125; }\n"           \
  "\\unset LLM_DO_STATE\n"

static void put_quoted(FILE *out, const char *text) {
  fputc('\'', out);
  for (; *text; text++)
    if (*text == '\'') fputs("'\\''", out);
    else fputc(*text, out);
  fputc('\'', out);
}

static int sealed(FILE *out, char **bytes, const size_t *size) {
  int fd = fclose(out) == 0 ? memory_sealed(*bytes, *size, "state") : -1;
  free(*bytes);
  if (fd < 0) fail("init: state", "");
  return fd;
}

/* A file that bash reads before the line; `own` = the file that the user has for that, or NULL. */
static int start_of_bash(int restores, const char *own) {
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (!out) fail("init: state", "");
  fputs("\\trap '" SAVE_OF_BASH "' EXIT\n", out);
  if (restores) fputs(RESTORE, out);
  fputs("\\exec 61<&- 62<&-\n" BASH_LEVEL "\n", out);
  if (own) fputs("\\export " BASH_STARTS_WITH, out), put_quoted(out, own), fputs("\n[[ -r $BASH_ENV ]] && \\. \"$BASH_ENV\"\n\\:\n", out);
  else fputs("\\unset BASH_ENV\n", out);
  return sealed(out, &bytes, &size);
}

/* In the line's first line, so the numbers of lines in messages stay. */
static char *line_of_sh(const char *line) {
  static const char TRAP[] = "trap '" SAVE_OF_SH "' 0; ";
  char *both = NULL;
  if (asprintf(&both, "%s%s", TRAP, line) < 0) fail("init: memory", "");
  return both;
}

static void open_pipe(struct kept_state *state) {
  int ends[2];
  state->bytes = malloc(READ_MAX + DROPPED); /* not static: init would be larger, and each run slower */
  if (!state->bytes || pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) fail("init: pipe", "");
  state->in = ends[0], state->places[0] = ends[1], state->is_shell = 1;
}

/* ---- a command ---- */

static int is_called(const char *variable, const char *prefix) { return variable && strncmp(variable, prefix, strlen(prefix)) == 0; }

static const char *value_of(char *const *env, const char *prefix) {
  for (; *env; env++)
    if (is_called(*env, prefix)) return *env + strlen(prefix);
  return NULL;
}

static int is_among(char *const *variables, const char *variable) {
  size_t name = strcspn(variable, "=") + 1;
  for (; *variables; variables++)
    if (strncmp(*variables, variable, name) == 0) return 1;
  return 0;
}

/* Variables of the command that left the state, not of the state. */
static int is_of_its_command(const char *variable) { return is_called(variable, "_=") || is_called(variable, "SHLVL=") || is_called(variable, "PWD=") || is_called(variable, RESERVED); }

static char *variable_of(const char *name, const char *value) {
  char *variable = NULL;
  if (asprintf(&variable, "%s%s", name, value) < 0) fail("init: memory", "");
  return variable;
}

/* Variables of the state instead of the run's, but for what the run says of its sandbox; then the command's own. */
static char **variables_with(const struct parts *parts, char **run, char **own) {
  size_t count = parts->count + 2, at = 0;
  for (char **one = run; *one; one++) count++;
  char **env = calloc(count, sizeof *env);
  if (!env) fail("init: memory", "");
  for (char *one = parts->variables; *one; one += strlen(one) + 1)
    if (!is_of_its_command(one) && !is_among(own, one)) env[at++] = one;
  for (char **one = run; one < own; one++)
    if (is_called(*one, RESERVED)) env[at++] = *one;
  for (char **one = own; *one; one++) env[at++] = *one;
  if (!is_among(own, "PWD=")) env[at++] = variable_of("PWD=", parts->directory);
  return env;
}

static void restore(struct command *command, uint64_t own, const struct parts *parts) {
  size_t count = 0;
  while (command->env[count]) count++;
  if (own > count) fail_with(EINVAL, "init: command block", "");
  parts->directory[strlen(parts->directory) - 1] = 0;
  command->env = variables_with(parts, command->env, command->env + count - own);
  command->umask = (mode_t)parts->umask;
  if (!command->directory) command->directory = parts->directory;
}

/* Without the two that are its own. */
static char **variables_of_bash(char **env) {
  size_t count = 3, at = 0;
  for (char **one = env; *one; one++) count++;
  char **changed = calloc(count, sizeof *changed);
  if (!changed) fail("init: memory", "");
  for (; *env; env++)
    if (!is_called(*env, BASH_STARTS_WITH) && !is_called(*env, "SHLVL=")) changed[at++] = *env;
  changed[at++] = BASH_STARTS_WITH "/proc/self/fd/61", changed[at] = BASH_LEVEL;
  return changed;
}

static void start_bash(struct command *command, const struct parts *parts, struct kept_state *state) {
  int restores = parts->shell_size > 0;
  state->has_functions = 1;
  state->places[1] = start_of_bash(restores, value_of(command->env, BASH_STARTS_WITH));
  if (restores && (state->places[2] = memory_sealed(parts->shell, parts->shell_size, "state")) < 0) fail("init: state", "");
  command->env = variables_of_bash(command->env);
}

void kept_state_apply(struct command *command, uint64_t own, struct kept_state *state) {
  struct parts parts = {.shell_size = 0};
  char **line = line_of(command->argv);
  if (kept.bytes && split(kept.bytes, kept.size, &parts) == 0) restore(command, own, &parts);
  if (!line) return;
  open_pipe(state);
  if (is_shell(command->argv[0], "sh") && access(BASH, X_OK) == 0) command->argv[0] = BASH;
  if (is_shell(command->argv[0], "bash")) start_bash(command, &parts, state);
  else *line = line_of_sh(*line);
}

/* ---- an attendant ---- */

/* Returns 0 where there is nothing now. What is too much is read, too: a shell that cannot write would end by a signal. */
static int read_some(struct kept_state *state) {
  int has_room = state->size < READ_MAX;
  ssize_t got = state->in < 0 ? -1 : read(state->in, state->bytes + state->size, has_room ? READ_MAX - state->size : DROPPED);
  if (got == 0) close(state->in), state->in = -1;
  if (got > 0 && has_room) state->size += (size_t)got;
  return got > 0;
}

void kept_state_read(struct kept_state *state) { (void)read_some(state); }

int kept_state_pass(struct kept_state *state, int has_ended_well) {
  while (state->size < READ_MAX && read_some(state)) continue;
  if (!state->is_shell || !has_ended_well) return STATE_NONE;
  if (state->size > STATE_MAX) return STATE_TOO_LARGE;
  int fd = is_whole(state->bytes, state->size, state->has_functions) ? memory_sealed(state->bytes, state->size, "state") : -1;
  return fd >= 0 && message_send(kept.theirs, "", 1, &fd, 1) == 0 ? STATE_KEPT : STATE_UNCHANGED;
}
