#include "client/result-template.h"

#include "client/foreseen-end.h"
#include "lib/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- what launch reported ---- */

/* Strings of the report escape their quotes, so none of them can look like a key. */
long long status_number(const char *status, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(status, quoted);
  return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

int status_says(const char *status, const char *key, const char *text) {
  char quoted[64];
  return (size_t)snprintf(quoted, sizeof quoted, "\"%s\":\"%s\"", key, text) < sizeof quoted && strstr(status, quoted) != NULL;
}

static int is_at_or_below(const char *path, const char *top) {
  size_t length = strlen(top);
  return strncmp(path, top, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Of the host there is nothing in a directory or a tmpfs that the sandbox makes. */
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

/* Of /etc the plan shows what programs need: the rest of it is no path to suggest. */
static int is_shown(const struct launchfile *file, const char *path) {
  struct entry entry;
  size_t position = 0;
  if (is_at_or_below(path, "/proc") || is_at_or_below(path, "/dev") || is_at_or_below(path, "/etc")) return 1;
  while (launchfile_next(file, &position, &entry))
    if (shows(&entry, path)) return 1;
  return 0;
}

/* What is here but not inside may be why a command has failed. src/run/exec.ts names it, by the same rule. */
int result_names_hidden_path(const struct result *result) {
  for (char **word = result->command + 1; result->command[0] && *word; word++)
    if (**word == '/' && (*word)[1] && !is_shown(result->file, *word) && access(*word, F_OK) == 0) return 1;
  return 0;
}

/* Of the end of stderr: as much as src/report/stderr-denials.ts looks at. */
#define LOOKED_AT (16u << 10)

/* Words of a file system that refuses writes, or is full; of calls that the filter refuses (src/report/filter-denials.ts). */
static const char *const REFUSALS[] = {"read-only file system", "EROFS", "no space left on device", "ENOSPC",
                                       "operation not permitted", "new namespace", "no usable sandbox", "user namespaces", "cross-device", "EXDEV"};

static int ends_path(char c) { return c == 0 || strchr(" \t\r\n'\"`:,;()", c) != NULL; }

static int is_hidden(const struct launchfile *file, const char *from, size_t length) {
  char path[4096];
  if (length < 2 || length >= sizeof path) return 0;
  memcpy(path, from, length);
  path[length] = 0;
  return !is_shown(file, path) && access(path, F_OK) == 0;
}

/* Does it name a path that is here and not inside? More than node takes for one: it looks again. */
static int names_hidden(const struct launchfile *file, const char *text) {
  for (const char *at = strchr(text, '/'); at; at = strchr(at, '/')) {
    size_t length = 0;
    while (!ends_path(at[length])) length++;
    if ((at == text || ends_path(at[-1])) && is_hidden(file, at, length)) return 1;
    at += length;
  }
  return 0;
}

int result_tells_of_refusal(const struct result *result) {
  static char text[LOOKED_AT + 1];
  const struct stream *stream = &result->capture->stream[1];
  if (!result->capture->is_on || !stream_is_whole(stream) || status_number(result->status, STATUS_WAIT_STATUS) == 0) return 0;
  size_t size = stream->seen < LOOKED_AT ? stream->seen : LOOKED_AT;
  memcpy(text, stream->bytes + stream->seen - size, size);
  text[size] = 0;
  for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++)
    if (strcasestr(text, REFUSALS[i])) return 1;
  return names_hidden(result->file, text);
}

/* So may a process limit that counts no refusals: did it have as many as the V_RLIMIT entry allows, the command and init among them? */
static int may_lack_processes(const struct result *result) {
  struct entry entry;
  size_t position = 0;
  uint64_t number, most;
  while (launchfile_next(result->file, &position, &entry)) {
    if (entry.verb != V_RLIMIT || parse_number(entry.word[0], INT32_MAX, &number) < 0 || number != RLIMIT_NPROC) continue;
    if (parse_number(entry.word[1], INT64_MAX, &most) < 0) return 1;
    if (status_number(result->status, STATUS_PEAK_PIDS) >= (long long)most || status_number(result->status, STATUS_KILLED) + 1 + NAMESPACE_PROCESSES >= (long long)most) return 1;
  }
  return 0;
}

static int has_key(const struct result *result, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  return strstr(result->status, quoted) != NULL;
}

/* How the line of a command that ended by itself begins (lib/status.c). */
#define ORDINARY "{\"" STATUS_CAUSE "\":\"exit\""

#define NETWORK "\"" STATUS_NETWORK "\":["
#define REFUSED "\"verdict\":\"not-" /* no text in JSON can hold it */
#define DENIED "\"verdict\":\"denied"
#define UNREACHABLE "\"verdict\":\"unreachable"
#define UNRESOLVED "\"verdict\":\"unresolved"
#define TOO_MANY "\"verdict\":\"too-many"

/* Its rows are a part of the JSON result and of the audit log; people hear of a restricted network where the command has failed, or where it was lost. */
static int tells_of_network(const struct result *result, int has_failed) {
  struct entry entry;
  const char *rows = strstr(result->status, NETWORK);
  if (!rows) return 0;
  if (strstr(result->status, "\"" STATUS_NETWORK_LOST "\":") || strstr(result->status, "\"" STATUS_NETWORK_OMITTED "\":")) return 1;
  if (result->capture->is_on || launchfile_find(result->file, V_AUDIT, &entry)) return rows[strlen(NETWORK)] != ']';
  return has_failed && (strstr(rows, REFUSED) || strstr(rows, DENIED) || strstr(rows, UNREACHABLE) || strstr(rows, UNRESOLVED) || strstr(rows, TOO_MANY));
}

int result_has_events(const struct result *result) {
  static const char *const SEEN[] = {STATUS_ATTEMPTS, STATUS_SET_IDS, STATUS_CONFIG_LOCKED, STATUS_UNWATCHED, STATUS_FULL, STATUS_LAYER}, *const COUNTED[] = {STATUS_OOM_KILLS, STATUS_PIDS_REFUSED};
  for (size_t i = 0; i < sizeof SEEN / sizeof *SEEN; i++)
    if (has_key(result, SEEN[i])) return 1;
  for (size_t i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++)
    if (status_number(result->status, COUNTED[i]) > 0) return 1;
  return tells_of_network(result, 1) || may_lack_processes(result);
}

int result_needs_no_words(const struct result *result) {
  if (strncmp(result->status, ORDINARY, strlen(ORDINARY)) != 0) return 0;
  long long end = status_number(result->status, STATUS_WAIT_STATUS);
  if (end < 0 || (end & 0x7f)) return 0;
  if (status_number(result->status, STATUS_SET_IDS) > 0 || strstr(result->status, "\"" STATUS_UNWATCHED "\":") || (end != 0 && strstr(result->status, "\"" STATUS_CONFIG_LOCKED "\":"))) return 0;
  if (tells_of_network(result, end != 0) || has_key(result, STATUS_LAYER)) return 0;
  if (status_number(result->status, STATUS_OOM_KILLS) > 0 || status_number(result->status, STATUS_PIDS_REFUSED) > 0) return 0;
  if (has_key(result, STATUS_FULL)) return 0;
  return end == 0 || (!result_names_hidden_path(result) && !may_lack_processes(result));
}

/* ---- text ---- */

int result_is_text(const struct result *result) {
  for (int i = 0; result->capture->is_on && i < CAPTURE_POLLS; i++) {
    const struct stream *stream = &result->capture->stream[i];
    if (!stream_is_whole(stream) || !utf8_is_text(stream->bytes, stream->seen)) return 0;
  }
  for (char **word = result->command; *word; word++)
    if (!utf8_is_text(*word, strlen(*word))) return 0;
  return 1;
}

/* ---- writing ---- */

struct sink {
  int fd, error;
  size_t used;
  char bytes[64 << 10];
};

/* A caller's pipe may be one that does not wait. */
static void flush(struct sink *sink) {
  for (size_t done = 0; done < sink->used && !sink->error;) {
    ssize_t sent = write(sink->fd, sink->bytes + done, sink->used - done);
    struct pollfd takes = {sink->fd, POLLOUT, 0};
    if (sent >= 0) done += (size_t)sent;
    else if (errno == EAGAIN) poll(&takes, 1, -1);
    else if (errno != EINTR) sink->error = errno;
  }
  sink->used = 0;
}

static void put(struct sink *sink, const char *bytes, size_t size) {
  while (size > 0) {
    size_t some = sizeof sink->bytes - sink->used;
    if (some > size) some = size;
    memcpy(sink->bytes + sink->used, bytes, some);
    sink->used += some;
    bytes += some;
    size -= some;
    if (sink->used == sizeof sink->bytes) flush(sink);
  }
}

static void put_text(struct sink *sink, const char *text) { put(sink, text, strlen(text)); }

static void put_whole(struct sink *sink, long long number) {
  char text[24];
  snprintf(text, sizeof text, "%lld", number < 0 ? 0 : number);
  put_text(sink, text);
}

/* Thousandths, as JavaScript prints them: no zero at the end. */
static void put_thousandths(struct sink *sink, long long number) {
  char text[32];
  if (number < 0) number = 0;
  size_t size = (size_t)snprintf(text, sizeof text, "%lld.%03lld", number / 1000, number % 1000);
  while (text[size - 1] == '0') size--;
  if (text[size - 1] == '.') size--;
  put(sink, text, size);
}

/* ---- strings ---- */

/* What JSON.stringify escapes, and the two line separators that report/json.ts escapes, too. Returns how many bytes it stands
 * for, 0 for a byte that is written as it is. */
static size_t escape_of(const unsigned char *at, size_t left, char escape[8]) {
  static const char SHORT[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
  if (*at < sizeof SHORT && SHORT[*at]) snprintf(escape, 8, "\\%c", SHORT[*at]);
  else if (*at < 0x20) snprintf(escape, 8, "\\u%04x", *at);
  else if (left >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] & 0xfe) == 0xa8) return snprintf(escape, 8, "\\u%04x", 0x2000 + (at[2] & 0x3f)), 3;
  else return 0;
  return 1;
}

static void put_string(struct sink *sink, const char *bytes, size_t size) {
  const unsigned char *at = (const unsigned char *)bytes;
  char escape[8];
  put_text(sink, "\"");
  for (size_t done = 0, plain; done < size; done += plain) {
    size_t escaped = 0;
    for (plain = 0; done + plain < size && !escaped;)
      if (!(escaped = escape_of(at + done + plain, size - done - plain, escape))) plain++;
    put(sink, bytes + done, plain);
    if (escaped) put_text(sink, escape);
    plain += escaped;
  }
  put_text(sink, "\"");
}

/* Inside of a string. */
static void put_escaped(struct sink *sink, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  char escape[8];
  for (; *at; at++)
    if (escape_of(at, 1, escape)) put_text(sink, escape);
    else put(sink, (const char *)at, 1);
}

static void put_words(struct sink *sink, char **words) {
  put_text(sink, "[");
  for (char **word = words; *word; word++) {
    if (word != words) put_text(sink, ",");
    put_string(sink, *word, strlen(*word));
  }
  put_text(sink, "]");
}

/* ---- the slots ---- */

static const char *const NAMES[SLOTS] = {
#define ROW(slot, name) [slot] = name,
    SLOT_TABLE(ROW)
#undef ROW
};

static enum slot slot_named(const char *name) {
  for (int slot = 0; slot < SLOTS; slot++)
    if (strcmp(NAMES[slot], name) == 0) return (enum slot)slot;
  return SLOTS;
}

static int is_for_audit(enum slot slot) { return slot == SLOT_TIME || slot == SLOT_DECIDED_BY || slot == SLOT_ARGV_HASH || slot == SLOT_PREVIOUS_HASH; }

int template_is_sound(const struct launchfile *file, enum verb verb) {
  struct entry entry;
  size_t position = 0;
  enum slot last = SLOT_END;
  int pieces = 0;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb != verb) continue;
    if (pieces++ && last == SLOT_END) return -1; /* nothing follows the end */
    if ((last = slot_named(entry.word[1])) == SLOTS || (verb != V_RECORD && is_for_audit(last))) return -1;
  }
  return last == SLOT_END ? pieces > 0 : -1;
}

int result_is_sound(const struct launchfile *file) {
  struct entry entry;
  return template_is_sound(file, V_RESULT) == launchfile_find(file, V_CAPTURE, &entry);
}

/* Nanoseconds to thousandths of a millisecond, as src/backends/launch-status.ts rounds them. */
static long long microseconds(long long from_ns, long long to_ns) { return to_ns > from_ns ? (to_ns - from_ns + 500) / 1000 : 0; }

/* With its key, which is left out where there was no counter. */
static void put_counted(struct sink *sink, const struct result *result, const char *key, long long least) {
  long long count = status_number(result->status, key);
  if (count < least) return;
  put_text(sink, ",\"");
  put_text(sink, key);
  put_text(sink, "\":");
  put_whole(sink, count);
}

static void put_stream(struct sink *sink, const struct stream *stream) { put_string(sink, stream->bytes, stream->seen); }

static void put_line_text(struct sink *sink, const char *text) { put_string(sink, text, strlen(text)); }

static int is_of_end(enum slot slot) { return slot >= SLOT_SIGNAL && slot <= SLOT_TIMED_OUT; }

/* What was foreseen of the end. 0 where the slot has none. */
static int fill_foreseen(struct sink *sink, const struct result *result, enum slot slot) {
  struct entry filling;
  char number[24];
  if (result->end == &EXIT && !is_of_end(slot)) return 0;
  if (filling_at(result->file, result->end, result->line ? "record" : "result", NAMES[slot], &filling) < 0) return 0;
  put_text(sink, filling.word[4]);
  put_escaped(sink, filling_mark(&filling, result, number, sizeof number));
  put_text(sink, filling.word[6]);
  return 1;
}

/* Node has left nothing for it: nothing is written. */
static void lack(struct sink *sink) { sink->error = EBADMSG; }

static void fill(struct sink *sink, const struct result *result, enum slot slot) {
  const char *status = result->status;
  long long begun = status_number(status, STATUS_BEGUN_NS), started = status_number(status, STATUS_STARTED_NS), ended = status_number(status, STATUS_ENDED_NS);
  long long code = (status_number(status, STATUS_WAIT_STATUS) >> 8) & 0xff;
  if (started == 0) started = ended; /* it never got that far */
  if (fill_foreseen(sink, result, slot)) return;
  switch (slot) {
    case SLOT_OK: return result->end == &EXIT ? put_text(sink, code == 0 ? "true" : "false") : lack(sink);
    case SLOT_EXIT_CODE: return result->end == &EXIT ? put_whole(sink, code) : lack(sink);
    case SLOT_STDOUT: return put_stream(sink, &result->capture->stream[0]);
    case SLOT_STDERR: return put_stream(sink, &result->capture->stream[1]);
    case SLOT_DURATION: return put_thousandths(sink, microseconds(started, ended));
    case SLOT_WHOLE_DURATION: return put_whole(sink, (microseconds(started, ended) + 500) / 1000);
    case SLOT_SETUP: return put_thousandths(sink, microseconds(begun, started));
    case SLOT_COMMAND: return put_words(sink, result->command);
    case SLOT_CPU_TIME: return put_thousandths(sink, status_number(status, STATUS_CPU_US));
    case SLOT_PEAK_MEMORY: return put_whole(sink, status_number(status, STATUS_PEAK_MEMORY));
    case SLOT_PEAK_PIDS: return put_counted(sink, result, STATUS_PEAK_PIDS, 1);
    case SLOT_READ_BYTES: return put_counted(sink, result, STATUS_READ_BYTES, 0);
    case SLOT_WRITE_BYTES: return put_counted(sink, result, STATUS_WRITE_BYTES, 0);
    case SLOT_TIME: return put_line_text(sink, result->line->time);
    case SLOT_DECIDED_BY: return put_line_text(sink, result->line->decided_by);
    case SLOT_ARGV_HASH: return put_line_text(sink, result->line->argv_hash);
    case SLOT_PREVIOUS_HASH: return put_line_text(sink, result->line->previous_hash);
    case SLOT_SIGNAL:
    case SLOT_REASON:
    case SLOT_MESSAGE:
    case SLOT_DENIALS:
    case SLOT_HINTS:
    case SLOT_ERROR:
    case SLOT_TIMED_OUT: return lack(sink);
    case SLOT_END:
    case SLOTS: return put_text(sink, "\n");
  }
}

int template_write(const struct result *result, enum verb verb, int fd) {
  static struct sink sink;
  struct entry entry;
  size_t position = 0;
  sink.fd = fd;
  sink.error = 0;
  while (launchfile_next(result->file, &position, &entry)) {
    if (entry.verb != verb) continue;
    put_text(&sink, entry.word[0]);
    fill(&sink, result, slot_named(entry.word[1]));
  }
  flush(&sink);
  return sink.error;
}
