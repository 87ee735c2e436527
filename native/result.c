#include "result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- what launch reported ---- */

/* Strings of the report escape their quotes, so none of them can look like a key. */
static long long number_of(const char *status, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(status, quoted);
  return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

static int is_at_or_below(const char *path, const char *top) {
  size_t length = strlen(top);
  return strncmp(path, top, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* Of the host there is nothing in a directory or a tmpfs that the sandbox makes. */
static int shows(const struct record *record, const char *path) {
  switch (record->verb) {
    case V_ZONE:
    case V_BIND: return is_at_or_below(path, record->word[1]);
    case V_SYMLINK: return is_at_or_below(path, record->word[0]);
    case V_FILE:
    case V_TMPFS:
    case V_DIRECTORY: return strcmp(path, record->word[0]) == 0;
    default: return 0;
  }
}

static int is_shown(const struct launchfile *file, const char *path) {
  struct record record;
  size_t position = 0;
  if (is_at_or_below(path, "/proc") || is_at_or_below(path, "/dev")) return 1;
  while (launchfile_next(file, &position, &record))
    if (shows(&record, path)) return 1;
  return 0;
}

/* What is here but not inside may be why a command has failed. src/exec.ts names it, by the same rule. */
static int names_a_hidden_path(const struct result *result) {
  for (char **word = result->command + 1; result->command[0] && *word; word++)
    if (**word == '/' && (*word)[1] && !is_shown(result->file, *word) && access(*word, F_OK) == 0) return 1;
  return 0;
}

/* So may a process limit that counts no refusals: did it have as many as the V_RLIMIT record allows, init among them? */
static int may_lack_processes(const struct result *result) {
  struct record record;
  size_t position = 0;
  uint64_t number, most;
  while (launchfile_next(result->file, &position, &record)) {
    if (record.verb != V_RLIMIT || parse_number(record.word[0], INT32_MAX, &number) < 0 || number != RLIMIT_NPROC) continue;
    if (parse_number(record.word[1], INT64_MAX, &most) < 0) return 1;
    if (number_of(result->status, "peakPids") >= (long long)most || number_of(result->status, "killed") + 2 >= (long long)most) return 1;
  }
  return 0;
}

int result_needs_no_words(const struct result *result) {
  if (strncmp(result->status, "{\"cause\":\"exit\"", 15) != 0) return 0;
  long long end = number_of(result->status, "waitStatus");
  if (end < 0 || (end & 0x7f)) return 0;
  if (number_of(result->status, "setIds") > 0 || (end != 0 && strstr(result->status, "\"configLocked\":"))) return 0;
  if (number_of(result->status, "oomKills") > 0 || number_of(result->status, "pidsRefused") > 0) return 0;
  return end == 0 || (!names_a_hidden_path(result) && !may_lack_processes(result));
}

/* ---- text ---- */

/* Bytes of the character at `at`, 0 for what is none: table 3-7 of the Unicode standard, which is what TextDecoder takes. */
static size_t character(const unsigned char *at, size_t left) {
  unsigned char least = 0x80, most = 0xbf;
  size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  if (at[0] == 0xe0) least = 0xa0; /* no longer than needed */
  if (at[0] == 0xed) most = 0x9f;  /* no half of a pair */
  if (at[0] == 0xf0) least = 0x90;
  if (at[0] == 0xf4) most = 0x8f; /* nothing above U+10FFFF */
  if (length > 1 && (at[1] < least || at[1] > most)) return 0;
  for (size_t i = 2; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return length;
}

static int is_text(const char *bytes, size_t size) {
  const unsigned char *at = (const unsigned char *)bytes;
  for (size_t done = 0, length; done < size; done += length)
    if ((length = character(at + done, size - done)) == 0) return 0;
  return 1;
}

int result_is_text(const struct result *result) {
  for (int i = 0; i < CAPTURE_POLLS; i++) {
    const struct stream *stream = &result->capture->stream[i];
    if (!stream_is_whole(stream) || !is_text(stream->bytes, stream->seen)) return 0;
  }
  for (char **word = result->command; *word; word++)
    if (!is_text(*word, strlen(*word))) return 0;
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

/* What JSON.stringify escapes, and the two line separators that report/json.ts escapes beside. Returns how many bytes it stands
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

static void put_words(struct sink *sink, char **words) {
  put_text(sink, "[");
  for (char **word = words; *word; word++) {
    if (word != words) put_text(sink, ",");
    put_string(sink, *word, strlen(*word));
  }
  put_text(sink, "]");
}

/* ---- the holes ---- */

enum hole { HOLE_OK, HOLE_EXIT_CODE, HOLE_STDOUT, HOLE_STDERR, HOLE_DURATION, HOLE_WHOLE_DURATION, HOLE_SETUP, HOLE_COMMAND, HOLE_CPU_TIME, HOLE_PEAK_MEMORY, HOLE_PEAK_PIDS, HOLE_READ_BYTES, HOLE_WRITE_BYTES, HOLE_END, HOLES };

/* The same names as in src/report/result-template.ts. */
static const char *const NAMES[HOLES] = {
    [HOLE_OK] = "ok",           [HOLE_EXIT_CODE] = "exit-code",           [HOLE_STDOUT] = "stdout",
    [HOLE_STDERR] = "stderr",   [HOLE_DURATION] = "duration",             [HOLE_WHOLE_DURATION] = "whole-duration",
    [HOLE_SETUP] = "setup",     [HOLE_COMMAND] = "command",               [HOLE_CPU_TIME] = "cpu-time",
    [HOLE_PEAK_MEMORY] = "peak-memory", [HOLE_PEAK_PIDS] = "peak-pids",   [HOLE_READ_BYTES] = "read-bytes",
    [HOLE_WRITE_BYTES] = "write-bytes", [HOLE_END] = "end",
};

static enum hole hole_named(const char *name) {
  for (int hole = 0; hole < HOLES; hole++)
    if (strcmp(NAMES[hole], name) == 0) return (enum hole)hole;
  return HOLES;
}

int result_is_sound(const struct launchfile *file) {
  struct record record;
  size_t position = 0;
  enum hole last = HOLE_END;
  int pieces = 0;
  while (launchfile_next(file, &position, &record)) {
    if (record.verb != V_RESULT) continue;
    if (pieces++ && last == HOLE_END) return 0; /* nothing follows the end */
    if ((last = hole_named(record.word[1])) == HOLES) return 0;
  }
  return last == HOLE_END && launchfile_find(file, V_CAPTURE, &record) == (pieces > 0);
}

/* Nanoseconds to thousandths of a millisecond, as src/supervisor/launch-status.ts rounds them. */
static long long microseconds(long long from_ns, long long to_ns) { return to_ns > from_ns ? (to_ns - from_ns + 500) / 1000 : 0; }

/* With its key: where nobody counted there is none. */
static void put_counted(struct sink *sink, const struct result *result, const char *key, long long least) {
  long long count = number_of(result->status, key);
  if (count < least) return;
  put_text(sink, ",\"");
  put_text(sink, key);
  put_text(sink, "\":");
  put_whole(sink, count);
}

static void put_stream(struct sink *sink, const struct stream *stream) { put_string(sink, stream->bytes, stream->seen); }

static void fill(struct sink *sink, const struct result *result, enum hole hole) {
  const char *status = result->status;
  long long begun = number_of(status, "begunNs"), started = number_of(status, "startedNs"), ended = number_of(status, "endedNs");
  long long code = (number_of(status, "waitStatus") >> 8) & 0xff;
  if (started == 0) started = ended; /* it never got that far */
  switch (hole) {
    case HOLE_OK: return put_text(sink, code == 0 ? "true" : "false");
    case HOLE_EXIT_CODE: return put_whole(sink, code);
    case HOLE_STDOUT: return put_stream(sink, &result->capture->stream[0]);
    case HOLE_STDERR: return put_stream(sink, &result->capture->stream[1]);
    case HOLE_DURATION: return put_thousandths(sink, microseconds(started, ended));
    case HOLE_WHOLE_DURATION: return put_whole(sink, (microseconds(started, ended) + 500) / 1000);
    case HOLE_SETUP: return put_thousandths(sink, microseconds(begun, started));
    case HOLE_COMMAND: return put_words(sink, result->command);
    case HOLE_CPU_TIME: return put_thousandths(sink, number_of(status, "cpuUs"));
    case HOLE_PEAK_MEMORY: return put_whole(sink, number_of(status, "peakMemory"));
    case HOLE_PEAK_PIDS: return put_counted(sink, result, "peakPids", 1);
    case HOLE_READ_BYTES: return put_counted(sink, result, "readBytes", 0);
    case HOLE_WRITE_BYTES: return put_counted(sink, result, "writeBytes", 0);
    case HOLE_END:
    case HOLES: return put_text(sink, "\n");
  }
}

int result_write(const struct result *result, int fd) {
  static struct sink sink;
  struct record record;
  size_t position = 0;
  sink.fd = fd;
  while (launchfile_next(result->file, &position, &record)) {
    if (record.verb != V_RESULT) continue;
    put_text(&sink, record.word[0]);
    fill(&sink, result, hole_named(record.word[1]));
  }
  flush(&sink);
  return sink.error;
}
