#include "client/result.h"

#include "lib/files.h"
#include "lib/text.h"
#include "lib/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TEXT_MAX 4096

/* ---- launch's line ---- */

/* Strings of the line escape their quotes, so none of them can look like a key. */
long long status_number(const char *status, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(status, quoted);
  return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

static int status_says(const char *status, const char *key, const char *text) {
  char quoted[64];
  return (size_t)snprintf(quoted, sizeof quoted, "\"%s\":\"%s\"", key, text) < sizeof quoted && strstr(status, quoted) != NULL;
}

static int has_key(const struct result *result, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  return strstr(result->status, quoted) != NULL;
}

static int read_reason(const char *status, enum reason *reason) {
#define ROW(value, name) \
  if (status_says(status, STATUS_REASON, name)) return *reason = value, 0;
  REASON_TABLE(ROW)
#undef ROW
  return -1;
}

/* Finds why the command was not executed. Node explains an errno without words, and messages of the engine. */
static const struct exec_failure *read_failure(const char *status) {
  const struct exec_failure *failure = exec_failure((int)status_number(status, STATUS_ERRNO), status_says(status, STATUS_STEP, "interpreter"));
  return failure && status_says(status, STATUS_CODE, failure->code) && status_says(status, STATUS_DETAIL, "") ? failure : NULL;
}

int result_read(struct result *result) {
  const char *status = result->status;
  if (read_reason(status, &result->ending.reason) < 0) return -1;
  result->ending.exit_code = (int)status_number(status, STATUS_EXIT_CODE);
  result->ending.signal = (int)status_number(status, STATUS_SIGNAL);
  result->ending.exit_status = (int)status_number(status, STATUS_EXIT_STATUS);
  result->failure = result->ending.reason == REASON_SETUP ? read_failure(status) : NULL;
  return 0;
}

static int has_failed(const struct result *result) { return result->ending.exit_code != 0; }

/* ---- hidden paths ---- */

/* A directory or a tmpfs that the sandbox makes holds nothing of the host. */
static int shows(const struct entry *entry, const char *path) {
  switch (entry->verb) {
    case V_ZONE:
    case V_BIND: return is_at_or_below(path, entry->word[1]);
    case V_SYMLINK: return is_at_or_below(path, entry->word[0]);
    case V_FILE:
    case V_TMPFS:
    case V_DIRECTORY: return strcmp(path, entry->word[0]) == 0;
    default: return 0;
  }
}

/* The plan mounts the files of /etc that programs need, and no others are suggested. */
static int is_shown(const struct launchfile *file, const char *path) {
  struct entry entry;
  size_t position = 0;
  if (is_at_or_below(path, "/proc") || is_at_or_below(path, "/dev") || is_at_or_below(path, "/etc")) return 1;
  while (launchfile_next(file, &position, &entry))
    if (shows(&entry, path)) return 1;
  return 0;
}

static int is_of_zone(const struct launchfile *file, const char *path) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry))
    if ((entry.verb == V_ZONE || entry.verb == V_BIND) && is_at_or_below(path, entry.word[0])) return 1;
  return 0;
}

/* A relative name that climbs out of the directory, or a link that leads out (src/run/led-out.ts). */
static int leads_out(const struct launchfile *file, const char *name) {
  char real[PATH_MAX];
  return realpath(name, real) && !is_of_zone(file, real);
}

/* A path that exists on the host and not inside may explain the failure. src/run/exec.ts names it, by the same rule. */
static int names_hidden_path(const struct result *result) {
  for (char **word = result->command + 1; result->command[0] && *word; word++) {
    if (**word == '/' && (*word)[1] && !is_shown(result->file, *word) && access(*word, F_OK) == 0) return 1;
    if (**word && **word != '/' && **word != '-' && leads_out(result->file, *word)) return 1;
  }
  return 0;
}

/* Words of a file system that refuses writes, or is full; of calls that the filter refuses (src/report/filter-denials.ts). */
static const char *const REFUSALS[] = {"read-only file system", "EROFS", "no space left on device", "ENOSPC",
                                       "operation not permitted", "new namespace", "no usable sandbox", "user namespaces", "cross-device", "EXDEV", NULL};

static int ends_path(char c) { return c == 0 || strchr(" \t\r\n'\"`:,;()", c) != NULL; }

static int is_hidden(const struct launchfile *file, const char *from, size_t length) {
  char path[4096];
  if (length < 2 || length >= sizeof path) return 0;
  memcpy(path, from, length);
  path[length] = 0;
  return !is_shown(file, path) && access(path, F_OK) == 0;
}

/* Does the text name a hidden path? It takes more for a path than Node does, which decides. */
static int text_names_hidden_path(const struct launchfile *file, const char *text) {
  for (const char *at = strchr(text, '/'); at; at = strchr(at, '/')) {
    size_t length = 0;
    while (!ends_path(at[length])) length++;
    if ((at == text || ends_path(at[-1])) && is_hidden(file, at, length)) return 1;
    at += length;
  }
  return 0;
}

/* ---- names that a command has not found ---- */

/* The same words as in src/report/missing-names.ts, and for sockets as in src/report/socket-denials.ts. */
static const char *const MISSING[] = {"no such file", "ENOENT", "not found", "cannot find", "can't open", "cannot open", "no module named", NULL};
static const char *const MODULES[] = {"cannot find module", "cannot find package", NULL};
static const char *const CLOSED[] = {"permission denied", "EACCES", NULL};
static const char *const SOCKETS[] = {"mkfifo", "fifo", "bind", "listen", "socket", ".sock", NULL};

/* And as in src/report/loopback.ts. */
static const char *const LOOPBACK[] = {"localhost", "127.0.0.1", "::1", NULL};
static const char *const UNANSWERED[] = {"refused", "failed to connect", "couldn't connect", NULL};

static int says(const char *text, const char *const *words) {
  for (; *words; words++)
    if (strcasestr(text, *words)) return 1;
  return 0;
}

static int is_about_sockets(const struct result *result, const char *text) {
  int found = says(text, SOCKETS);
  for (char **word = result->command; !found && *word; word++) found = says(*word, SOCKETS);
  return found;
}

/* Does a directory above this one have it? Below the root of the sandbox lies what is above the workspace on the host. */
static int is_above(const char *path) {
  char candidate[2 * PATH_MAX], directory[PATH_MAX];
  if (!getcwd(directory, sizeof directory)) return 0;
  for (char *slash; (slash = strrchr(directory, '/')) && slash != directory;) {
    *slash = 0;
    if (snprintf(candidate, sizeof candidate, "%s%s", directory, path) < (int)sizeof candidate && access(candidate, F_OK) == 0) return 1;
  }
  return 0;
}

/* Node decides: it takes more names than that for files. */
static int is_there(const struct launchfile *file, const char *name) {
  if (name[0] == '/') return name[1] && access(name, F_OK) < 0 && is_above(name);
  return leads_out(file, name) || (strchr(name, '/') && access(name, X_OK) == 0);
}

static int line_misses_name(const struct launchfile *file, char *line) {
  for (char *rest, *word = strtok_r(line, " \t\r'\"`:,;()", &rest); word; word = strtok_r(NULL, " \t\r'\"`:,;()", &rest))
    if (strlen(word) < PATH_MAX && is_there(file, word)) return 1;
  return 0;
}

/* `text` is cut into its lines. */
static int misses_name(const struct result *result, char *text) {
  if (!says(text, MISSING)) return 0;
  if (strstr(text, "source: not found")) return 1; /* a word of bash */
  if (says(text, MODULES) && is_above("/node_modules")) return 1;
  for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    if (says(line, MISSING) && line_misses_name(result->file, line)) return 1;
  return 0;
}

/* Python buffers output to a pipe, and a signal ends it before it writes the buffer (src/report/classify.ts). */
static int lost_buffer(const struct result *result) {
  enum reason reason = result->ending.reason;
  int found = 0;
  if (reason != REASON_TIMEOUT && reason != REASON_CPU_TIME) return 0;
  if (result->capture->is_on ? result->capture->stream[0].seen || result->capture->stream[1].seen : isatty(STDOUT_FILENO)) return 0;
  for (char **word = result->command; !found && *word; word++) found = strstr(*word, "python") != NULL;
  return found;
}

/* Ends of which Node looks for a path that the command names and does not find. */
static int ended_on_its_own(const struct result *result) {
  enum reason reason = result->ending.reason;
  return reason == REASON_EXIT || reason == REASON_SIGNAL || reason == REASON_PIDS || reason == REASON_SECCOMP;
}

/* Programs that write what their words name: the same as in src/report/written-names.ts. A terminal shows what the command says, and we do not see it. */
static const char *const WRITERS[] = {"touch", "tee",  "truncate", "mkdir", "rm",   "chmod", "cp", "mv",  "ln",   "install", "sed", "dd", "cc",    "gcc", "g++", "c++",
                                      "clang", "ld", "go",       "sort",  "curl", "wget",  "git", "npm", "pnpm", "yarn",    "bun", "rustc", "cargo", NULL};

/* As a whole word: `rm`, and not `format`. */
static int names_program(const char *text, const char *program) {
  size_t length = strlen(program);
  for (const char *at = text; (at = strstr(at, program)); at++)
    if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length])) return 1;
  return 0;
}

static int may_have_written(const struct result *result) {
  for (char **word = result->command; *word; word++) {
    if (strchr(*word, '>')) return 1;
    for (const char *const *program = WRITERS; *program; program++)
      if (names_program(*word, *program)) return 1;
  }
  return 0;
}

/* And as in src/report/lost-files.ts. Whether they belong to a file that was lost, Node finds out. */
static const char *const SCRATCH[] = {"/tmp/", "/home/sandbox/", "/dev/shm/", "/run/", NULL};
static const char *const SAVED[] = {"sav", "wrote", "writ", "creat", "generat", "export", "stor", "dump", "download", NULL};

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* The end of stderr that launch has kept. */
static void read_said(const char *status, char text[SAID_MAX + 1]) {
  const char *at = strstr(status, "\"" STATUS_SAID "\":\"");
  size_t size = 0;
  at = at ? at + strlen("\"" STATUS_SAID "\":\"") : "";
  for (; size < SAID_MAX && digit(at[0]) >= 0 && digit(at[1]) >= 0; at += 2) text[size++] = (char)(digit(at[0]) << 4 | digit(at[1]));
  text[size] = 0;
}

static void read_captured(const struct stream *stream, char text[SAID_MAX + 1]) {
  size_t size = stream->seen < SAID_MAX ? stream->seen : SAID_MAX;
  if (size > 0) memcpy(text, stream->bytes + stream->seen - size, size);
  text[size] = 0;
}

/* A command that ends well and names a file in scratch, which is gone. At a terminal its words do, and we do not see the rest. */
static int names_lost_file(const struct result *result, char text[SAID_MAX + 1]) {
  int found = 0;
  for (char **word = result->command; !result->capture->is_on && *word && !found; word++) found = says(*word, SCRATCH);
  if (found) return isatty(STDERR_FILENO) && may_have_written(result);
  for (int i = 0; result->capture->is_on && i < CAPTURE_POLLS && !found; i++) {
    if (!stream_is_whole(&result->capture->stream[i])) continue;
    read_captured(&result->capture->stream[i], text);
    found = says(text, SCRATCH) && says(text, SAVED);
  }
  return found;
}

int result_needs_words(const struct result *result) {
  static char text[SAID_MAX + 1];
  const struct stream *stream = &result->capture->stream[1];
  if (lost_buffer(result)) return 1;
  if (!has_failed(result)) return names_lost_file(result, text);
  if (result->capture->is_on && !stream_is_whole(stream)) return 0;
  if (result->capture->is_on) read_captured(stream, text);
  else read_said(result->status, text);
  if (!result->capture->is_on && ended_on_its_own(result) && isatty(STDERR_FILENO) && may_have_written(result)) return 1;
  if (says(text, REFUSALS)) return 1;
  if (says(text, LOOPBACK) && says(text, UNANSWERED)) return 1;
  if (says(text, CLOSED) && is_about_sockets(result, text)) return 1;
  return text_names_hidden_path(result->file, text) || misses_name(result, text);
}

/* ---- events that Node has words for ---- */

/* Did the command have all the processes that the V_RLIMIT entry allows? It counts no refusals. The command and init are among them. */
static int may_lack_processes(const struct result *result) {
  struct entry entry;
  size_t position = 0;
  uint64_t number, most;
  while (launchfile_next_of(result->file, V_RLIMIT, &position, &entry)) {
    if (parse_number(entry.word[0], INT32_MAX, &number) < 0 || number != RLIMIT_NPROC) continue;
    if (parse_number(entry.word[1], INT64_MAX, &most) < 0) return 1;
    if (status_number(result->status, STATUS_PEAK_PIDS) >= (long long)most || status_number(result->status, STATUS_KILLED) + 1 + NAMESPACE_PROCESSES >= (long long)most) return 1;
  }
  return 0;
}

#define NETWORK "\"" STATUS_NETWORK "\":["
#define REFUSED "\"verdict\":\"not-" /* no text in JSON can hold it */
#define DENIED "\"verdict\":\"denied"
#define UNREACHABLE "\"verdict\":\"unreachable"
#define UNRESOLVED "\"verdict\":\"unresolved"
#define TOO_MANY "\"verdict\":\"too-many"

/* The rows are a part of the JSON result and of the audit log. People read of a restricted network when the command has failed, or when it was lost. */
static int tells_of_network(const struct result *result) {
  struct entry entry;
  const char *rows = strstr(result->status, NETWORK);
  if (!rows) return 0;
  if (has_key(result, STATUS_NETWORK_LOST) || has_key(result, STATUS_NETWORK_OMITTED)) return 1;
  if (result->capture->is_on || launchfile_find(result->file, V_AUDIT, &entry)) return rows[strlen(NETWORK)] != ']';
  return has_failed(result) && (strstr(rows, REFUSED) || strstr(rows, DENIED) || strstr(rows, UNREACHABLE) || strstr(rows, UNRESOLVED) || strstr(rows, TOO_MANY));
}

static int has_events(const struct result *result) {
  enum reason reason = result->ending.reason;
  if (status_number(result->status, STATUS_SET_IDS) > 0 || has_key(result, STATUS_UNWATCHED) || has_key(result, STATUS_FULL)) return 1;
  if (reason != REASON_MEMORY && status_number(result->status, STATUS_OOM_KILLS) > 0) return 1;
  if (reason != REASON_PIDS && status_number(result->status, STATUS_PIDS_REFUSED) > 0) return 1;
  if (tells_of_network(result)) return 1;
  return has_failed(result) && (has_key(result, STATUS_CONFIG_LOCKED) || may_lack_processes(result));
}

/* ---- which ends are known ---- */

static int find_words(const struct result *result, struct entry *words) {
  size_t position = 0;
  while (launchfile_next_of(result->file, V_REASON, &position, words))
    if (status_says(result->status, STATUS_REASON, words->word[0])) return 1;
  return 0;
}

static int has_words(const struct result *result) {
  struct entry words;
  switch (result->ending.reason) {
    case REASON_EXIT:
    case REASON_SIGNAL:
    case REASON_CANCELLED: return 1;
    case REASON_SETUP: return result->failure != NULL && result->failure != exec_failure(ENOENT, 1); /* Node finds the interpreter */
    case REASON_TIMEOUT:
    case REASON_CPU_TIME:
    case REASON_MEMORY:
    case REASON_PIDS:
    case REASON_SECCOMP: return find_words(result, &words);
    default: return 0;
  }
}

/* A name that a terminal does not show as it is must be spelled. */
static int is_printable(const char *name) {
  for (const char *at = name; *at; at++)
    if (*at < ' ' || *at > '~') return 0;
  return 1;
}

int result_is_known(const struct result *result) {
  if (!has_words(result) || has_events(result)) return 0;
  if (result->failure && !result->capture->is_on && !is_printable(result->command[0])) return 0;
  return !has_failed(result) || !ended_on_its_own(result) || !names_hidden_path(result);
}

int result_has_layer(const struct result *result) { return has_key(result, STATUS_LAYER); }

int result_is_plain(const struct result *result) {
  for (int i = 0; result->capture->is_on && i < CAPTURE_POLLS; i++)
    if (!stream_is_whole(&result->capture->stream[i])) return 0; /* Node tells of the limit */
  for (char **word = result->command; *word; word++)
    if (!utf8_is_text(*word, strlen(*word))) return 0;
  return 1;
}

/* ---- its words ---- */

const char *signal_name(int number) {
  static const char *const NAMES[] = {SIGNAL_NAMES};
  static char other[16];
  if (number > 0 && (size_t)number <= sizeof NAMES / sizeof *NAMES) return NAMES[number - 1];
  snprintf(other, sizeof other, "SIG%d", number);
  return other;
}

static int is_quiet(int number) {
  static const int QUIET[] = {QUIET_SIGNALS};
  for (size_t i = 0; i < sizeof QUIET / sizeof *QUIET; i++)
    if (QUIET[i] == number) return 1;
  return 0;
}

/* The first part of the message: the event that ended the command. */
static void write_head(const struct result *result, char *text, size_t room) {
  struct entry words;
  long long by = status_number(result->status, STATUS_CANCELLED_BY);
  text[0] = 0;
  if (result->ending.reason == REASON_SIGNAL && !is_quiet(result->ending.signal)) snprintf(text, room, "ended by %s", signal_name(result->ending.signal));
  else if (result->ending.reason == REASON_CANCELLED) snprintf(text, room, by > 0 ? "cancelled by %s" : "cancelled", signal_name((int)by));
  else if (find_words(result, &words)) snprintf(text, room, "%s", words.word[1]);
}

const char *result_message(const struct result *result) {
  static char text[TEXT_MAX];
  const char *program = result->command[0];
  long long killed = status_number(result->status, STATUS_KILLED);
  if (result->failure) return snprintf(text, sizeof text, "%s: %s", *program ? program : "''", result->failure->what), text;
  write_head(result, text, sizeof text);
  size_t length = strlen(text);
  if (length && killed > 0) snprintf(text + length, sizeof text - length, "; %lld process%s killed", killed, killed == 1 ? "" : "es");
  return text;
}

const char *result_hint(const struct result *result) {
  struct entry words;
  if (result->failure) return result->failure->hint;
  return find_words(result, &words) ? words.word[2] : "";
}

/* ---- for people ---- */

/* A reader that has gone is not our failure. */
static int print(int fd, const char *text, size_t length) {
  size_t done = write_most(fd, text, length);
  return done > 0 || length == 0 || errno == EPIPE ? 0 : -1;
}

struct lines {
  size_t size;
  char bytes[2 * TEXT_MAX];
};

static void add_line(struct lines *lines, const char *kind, const char *text) {
  size_t room = sizeof lines->bytes - lines->size;
  int added = snprintf(lines->bytes + lines->size, room, "llm-do: %s%s\n", kind, text);
  lines->size += added < 0 ? 0 : (size_t)added < room ? (size_t)added : room - 1;
}

int result_print(const struct result *result, int fd) {
  static struct lines lines;
  char kind[64] = "";
  const char *message = result_message(result), *hint = result_hint(result);
  lines.size = 0;
  if (result->failure) snprintf(kind, sizeof kind, "error %s: ", result->failure->code);
  if (*message) add_line(&lines, kind, message);
  if (*hint) add_line(&lines, "hint: ", hint);
  if (result->applied && result->applied[0]) add_line(&lines, "", result->applied);
  return print(fd, lines.bytes, lines.size);
}

_Noreturn void result_leave(const struct ending *ending, const sigset_t *before) {
  int by = ending->exit_status - 128;
  if (ending->reason == REASON_CANCELLED && ending->exit_code < 0 && (by == SIGINT || by == SIGTERM)) {
    signal(by, SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
    raise(by);
  }
  _exit(ending->exit_status); /* process 1 of a container, or a caller that blocks the signal */
}
