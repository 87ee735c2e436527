/* The JSON of a result, as src/report/json.ts and src/report/audit.ts write it. */
#include "client/result.h"

#include "lib/files.h"
#include "lib/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- writing ---- */

struct sink {
  int fd, error;
  int has_member; /* of the object that is being written */
  size_t used;
  char bytes[64 << 10];
};

/* A caller's pipe may be one that does not wait. */
static void flush(struct sink *sink) {
  if (!sink->error && write_all(sink->fd, sink->bytes, sink->used) < 0) sink->error = errno;
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

/* By hand: snprintf takes ten times as long, and a byte of output may need it each. */
static void write_code(char escape[8], unsigned code) {
  memcpy(escape, "\\u", 2);
  for (int i = 0; i < 4; i++) escape[2 + i] = "0123456789abcdef"[code >> (12 - 4 * i) & 15];
  escape[6] = 0;
}

/* The escapes of JSON.stringify, and those of the two line separators, as report/json.ts has them. Returns the number of bytes that the escape
 * replaces, 0 for a byte that is written as it is. */
static size_t escape_of(const unsigned char *at, size_t left, char escape[8]) {
  static const char SHORT[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
  if (*at < sizeof SHORT && SHORT[*at]) memcpy(escape, (char[]){'\\', SHORT[*at], 0}, 3);
  else if (*at < 0x20) write_code(escape, *at);
  else if (left >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] & 0xfe) == 0xa8) return write_code(escape, 0x2000 + (at[2] & 0x3f)), 3;
  else return 0;
  return 1;
}

/* Without quotes. */
static void put_escaped(struct sink *sink, const char *bytes, size_t size) {
  const unsigned char *at = (const unsigned char *)bytes;
  char escape[8];
  for (size_t done = 0, plain; done < size; done += plain) {
    size_t escaped = 0;
    for (plain = 0; done + plain < size && !escaped;)
      if (!(escaped = escape_of(at + done + plain, size - done - plain, escape))) plain++;
    put(sink, bytes + done, plain);
    if (escaped) put_text(sink, escape);
    plain += escaped;
  }
}

static void put_string(struct sink *sink, const char *text) {
  put_text(sink, "\"");
  put_escaped(sink, text, strlen(text));
  put_text(sink, "\"");
}

static void put_words(struct sink *sink, char **words) {
  put_text(sink, "[");
  for (char **word = words; *word; word++) {
    if (word != words) put_text(sink, ",");
    put_string(sink, *word);
  }
  put_text(sink, "]");
}

static void put_truth(struct sink *sink, int is_true) { put_text(sink, is_true ? "true" : "false"); }

/* ---- objects ---- */

static void begin(struct sink *sink) {
  put_text(sink, "{");
  sink->has_member = 0;
}

static void end(struct sink *sink) {
  put_text(sink, "}");
  sink->has_member = 1;
}

/* The value follows. */
static struct sink *key(struct sink *sink, const char *name) {
  put_text(sink, sink->has_member ? ",\"" : "\"");
  put_text(sink, name);
  put_text(sink, "\":");
  sink->has_member = 1;
  return sink;
}

/* The members that the plan knows. */
static void put_planned(struct sink *sink, const char *members) {
  put_text(sink, ",");
  put_text(sink, members);
}

/* ---- parts of a result ---- */

/* Nanoseconds to thousandths of a millisecond, as src/backends/launch-status.ts rounds them. */
static long long microseconds(long long from_ns, long long to_ns) { return to_ns > from_ns ? (to_ns - from_ns + 500) / 1000 : 0; }

struct times {
  long long setup, duration; /* microseconds */
};

static struct times times_of(const char *status) {
  long long begun = status_number(status, STATUS_BEGUN_NS), started = status_number(status, STATUS_STARTED_NS), ended = status_number(status, STATUS_ENDED_NS);
  if (started == 0) started = ended; /* it never got that far */
  return (struct times){microseconds(begun, started), microseconds(started, ended)};
}

/* ---- streams, as src/report/decode-output.ts shows them ---- */

/* The bytes of a stream that a result shows. */
struct part {
  const char *bytes;
  size_t head, tail_at, tail; /* bytes of the head, where the tail begins, its bytes */
};

/* The longest character of UTF-8 has four bytes. */
#define REMNANT_MAX 3

static int is_continuation(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

/* Bytes at the end that belong to a character which the cut went through. */
static size_t broken_end(const char *bytes, size_t size) {
  for (size_t back = 1; back <= REMNANT_MAX && back <= size; back++) {
    unsigned char byte = (unsigned char)bytes[size - back];
    if (is_continuation((char)byte)) continue;
    size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? back : 0;
  }
  return 0;
}

/* The same at the start. */
static size_t broken_start(const char *bytes, size_t size) {
  size_t remnant = 0;
  while (remnant < size && is_continuation(bytes[remnant])) remnant++;
  return remnant <= REMNANT_MAX ? remnant : 0;
}

static struct part all_of(const struct stream *stream) {
  size_t head = stream_head(stream);
  return (struct part){stream->bytes, head, head, stream_kept(stream) - head};
}

static struct part whole_characters(const struct stream *stream) {
  struct part part = all_of(stream);
  if (stream_is_whole(stream)) return part;
  size_t start = broken_start(part.bytes + part.tail_at, part.tail);
  part.head -= broken_end(part.bytes, part.head);
  part.tail_at += start, part.tail -= start;
  return part;
}

/* A stream that is complete may be cut within a character where the head ends. */
static int is_text(const struct stream *stream) {
  struct part part = whole_characters(stream);
  if (stream_is_whole(stream)) return utf8_is_text(part.bytes, stream->seen);
  return utf8_is_text(part.bytes, part.head) && utf8_is_text(part.bytes + part.tail_at, part.tail);
}

static int are_text(const struct capture *capture) { return is_text(&capture->stream[0]) && is_text(&capture->stream[1]); }

static size_t dropped(const struct capture *capture, int which) {
  const struct stream *stream = &capture->stream[which];
  struct part part = are_text(capture) ? whole_characters(stream) : all_of(stream);
  return stream->seen - part.head - part.tail;
}

static void put_base64(struct sink *sink, const unsigned char *bytes, size_t size) {
  static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t at = 0; at < size; at += 3) {
    size_t some = size - at < 3 ? size - at : 3;
    unsigned three = (unsigned)bytes[at] << 16 | (some > 1 ? (unsigned)bytes[at + 1] << 8 : 0) | (some > 2 ? bytes[at + 2] : 0);
    char four[4] = {DIGITS[three >> 18], DIGITS[three >> 12 & 63], some > 1 ? DIGITS[three >> 6 & 63] : '=', some > 2 ? DIGITS[three & 63] : '='};
    put(sink, four, sizeof four);
  }
}

/* Without quotes. The head and the tail of a whole stream are one text. */
static void put_content(struct sink *sink, const struct capture *capture, int which) {
  const struct stream *stream = &capture->stream[which];
  struct part part = whole_characters(stream);
  if (!are_text(capture)) return put_base64(sink, (const unsigned char *)stream->bytes, stream_kept(stream));
  if (stream_is_whole(stream)) return put_escaped(sink, stream->bytes, stream->seen);
  put_escaped(sink, part.bytes, part.head);
  put_escaped(sink, part.bytes + part.tail_at, part.tail);
}

static void put_stream(struct sink *sink, const struct capture *capture, int which) {
  put_text(sink, "\"");
  put_content(sink, capture, which);
  put_text(sink, "\"");
}

static void put_truncated(struct sink *sink, const struct capture *capture) {
  begin(sink);
  put_whole(key(sink, "stdout"), (long long)dropped(capture, 0));
  put_whole(key(sink, "stderr"), (long long)dropped(capture, 1));
  end(sink);
}

/* Of the forms that only name the unusual one. */
static void put_encoding(struct sink *sink, const struct capture *capture) {
  if (!are_text(capture)) put_string(key(sink, "encoding"), "base64");
}

/* Left out where there was no counter. */
static void put_counted(struct sink *sink, const struct result *result, const char *counter, long long least) {
  long long count = status_number(result->status, counter);
  if (count >= least) put_whole(key(sink, counter), count);
}

static void put_usage(struct sink *sink, const struct result *result) {
  begin(sink);
  put_thousandths(key(sink, "cpuMs"), status_number(result->status, STATUS_CPU_US));
  put_whole(key(sink, "peakMemory"), status_number(result->status, STATUS_PEAK_MEMORY));
  put_counted(sink, result, STATUS_PEAK_PIDS, 1);
  put_counted(sink, result, STATUS_READ_BYTES, 0);
  put_counted(sink, result, STATUS_WRITE_BYTES, 0);
  end(sink);
}

static void put_exit_code(struct sink *sink, const struct ending *ending) {
  if (ending->exit_code < 0) put_text(sink, "null");
  else put_whole(sink, ending->exit_code);
}

static void put_signal(struct sink *sink, const struct ending *ending) {
  if (ending->signal) put_string(sink, signal_name(ending->signal));
  else put_text(sink, "null");
}

/* The cgroup counts refusals. A limit without a counter was met once. */
static long long denial_count(const struct result *result) {
  const char *counter = result->ending.reason == REASON_MEMORY ? STATUS_OOM_KILLS : result->ending.reason == REASON_PIDS ? STATUS_PIDS_REFUSED : NULL;
  long long count = counter ? status_number(result->status, counter) : 1;
  return count > 1 ? count : 1;
}

static void put_denial(struct sink *sink, const struct entry *denial, long long count) {
  begin(sink);
  put_string(key(sink, "layer"), denial->word[1]);
  put_string(key(sink, "operation"), denial->word[2]);
  put_string(key(sink, "target"), denial->word[3]);
  put_whole(key(sink, "count"), count);
  put_string(key(sink, "fix"), denial->word[4]);
  put_string(key(sink, "key"), denial->word[5]);
  put_string(key(sink, "evidence"), "sandbox");
  end(sink);
}

static void put_denials(struct sink *sink, const struct result *result) {
  struct entry entry;
  size_t position = 0;
  int denials = 0;
  put_text(sink, "[");
  while (launchfile_next(result->file, &position, &entry)) {
    if (entry.verb != V_DENIAL || strcmp(entry.word[0], reason_name(result->ending.reason)) != 0) continue;
    if (denials++) put_text(sink, ",");
    put_denial(sink, &entry, denial_count(result));
  }
  put_text(sink, "]");
}

static void put_hints(struct sink *sink, const char *hint) {
  put_text(sink, "[");
  if (*hint) put_string(sink, hint);
  put_text(sink, "]");
}

/* The texts of the status line are JSON already. */
static void put_hidden(struct sink *sink, const struct result *result) {
  static const char PATHS[] = "\"" STATUS_HIDDEN_PATHS "\":";
  const char *paths = strstr(result->status, PATHS);
  int in_text = 0;
  if (!paths) return;
  const char *at = paths += strlen(PATHS);
  for (; *at && (in_text || *at != ']'); at++) {
    if (*at == '\\' && at[1]) at++;
    else if (*at == '"') in_text = !in_text;
  }
  begin(key(sink, "hidden"));
  put_whole(key(sink, "count"), status_number(result->status, STATUS_HIDDEN));
  put(key(sink, "paths"), paths, (size_t)(at - paths) + (*at == ']'));
  end(sink);
}

static void put_error(struct sink *sink, const struct result *result) {
  if (!result->failure) return;
  begin(key(sink, "error"));
  put_string(key(sink, "code"), result->failure->code);
  put_string(key(sink, "message"), result_message(result));
  put_string(key(sink, "hint"), result->failure->hint);
  end(sink);
}

static int is_ok(const struct ending *ending) { return ending->reason == REASON_EXIT && ending->exit_code == 0; }

/* ---- forms ---- */

static void put_native(struct sink *sink, const struct result *result, const char *members) {
  const struct ending *ending = &result->ending;
  struct times times = times_of(result->status);
  begin(sink);
  put_whole(key(sink, "schema"), 1);
  put_truth(key(sink, "ok"), is_ok(ending));
  put_exit_code(key(sink, "exitCode"), ending);
  put_signal(key(sink, "signal"), ending);
  put_string(key(sink, "reason"), reason_name(ending->reason));
  put_stream(key(sink, "stdout"), result->capture, 0);
  put_stream(key(sink, "stderr"), result->capture, 1);
  put_truncated(key(sink, "truncated"), result->capture);
  put_string(key(sink, "encoding"), are_text(result->capture) ? "utf8" : "base64");
  put_thousandths(key(sink, "durationMs"), times.duration);
  put_thousandths(key(sink, "setupMs"), times.setup);
  put_whole(key(sink, "exitStatus"), ending->exit_status);
  put_words(key(sink, "command"), result->command);
  put_usage(key(sink, "usage"), result);
  put_string(key(sink, "message"), result_message(result));
  put_denials(key(sink, "denials"), result);
  put_hints(key(sink, "hints"), result_hint(result));
  put_hidden(sink, result);
  put_error(sink, result);
  put_planned(sink, members);
  end(sink);
}

/* A caller that only knows stderr must still learn why there is none. */
static void put_shell_stderr(struct sink *sink, const struct result *result) {
  char line[64];
  put_text(sink, "\"");
  put_content(sink, result->capture, 1);
  if (result->failure && are_text(result->capture)) {
    const char *message = result_message(result);
    put_escaped(sink, line, (size_t)snprintf(line, sizeof line, "llm-do: error %s: ", result->failure->code));
    put_escaped(sink, message, strlen(message));
    put_escaped(sink, "\n", 1);
  }
  put_text(sink, "\"");
}

#define TIMED_OUT "-1"

static void put_shell(struct sink *sink, const struct result *result) {
  begin(sink);
  put_stream(key(sink, "stdout"), result->capture, 0);
  put_shell_stderr(key(sink, "stderr"), result);
  if (result->ending.reason == REASON_TIMEOUT) put_text(key(sink, "exit_code"), TIMED_OUT);
  else put_whole(key(sink, "exit_code"), result->ending.exit_status);
  put_truth(key(sink, "truncated"), dropped(result->capture, 0) + dropped(result->capture, 1) > 0);
  put_encoding(sink, result->capture);
  end(sink);
}

static void put_task(struct sink *sink, const struct result *result) {
  enum reason reason = result->ending.reason;
  begin(sink);
  put_truth(key(sink, "success"), is_ok(&result->ending));
  put_stream(key(sink, "stdout"), result->capture, 0);
  put_stream(key(sink, "stderr"), result->capture, 1);
  put_whole(key(sink, "exitCode"), result->ending.exit_status);
  put_whole(key(sink, "executionTime"), (times_of(result->status).duration + 500) / 1000);
  put_truth(key(sink, "timedOut"), reason == REASON_TIMEOUT);
  if (reason != REASON_EXIT && reason != REASON_SIGNAL) put_string(key(sink, "error"), result_message(result));
  put_encoding(sink, result->capture);
  end(sink);
}

static void put_record(struct sink *sink, const struct result *result, const struct audit_line *line, const char *members) {
  begin(sink);
  put_whole(key(sink, "schema"), 1);
  put_string(key(sink, "time"), line->time);
  put_string(key(sink, "decision"), "run");
  put_string(key(sink, "decidedBy"), line->decided_by);
  put_string(key(sink, "argvSha256"), line->argv_hash);
  put_words(key(sink, "argv"), result->command);
  put_string(key(sink, "reason"), reason_name(result->ending.reason));
  put_exit_code(key(sink, "exitCode"), &result->ending);
  put_signal(key(sink, "signal"), &result->ending);
  put_thousandths(key(sink, "durationMs"), times_of(result->status).duration);
  put_usage(key(sink, "usage"), result);
  put_denials(key(sink, "denials"), result);
  if (result->failure) put_string(key(sink, "error"), result->failure->code);
  put_planned(sink, members);
  put_string(key(sink, "prev"), line->previous_hash);
  end(sink);
}

/* ---- one line ---- */

enum form { FORM_NATIVE, FORM_SHELL, FORM_TASK, FORMS };

static enum form form_named(const char *name) {
  static const char *const NAMES[FORMS] = {"native", "shell", "task"};
  enum form form = 0;
  while (form < FORMS && strcmp(NAMES[form], name) != 0) form++;
  return form;
}

int result_has_form(const char *name) { return form_named(name) != FORMS; }

int result_is_sound(const struct launchfile *file) {
  struct entry result, capture;
  int is_there = launchfile_find(file, V_RESULT, &result);
  return is_there == launchfile_find(file, V_CAPTURE, &capture) && (!is_there || form_named(result.word[0]) != FORMS);
}

static struct sink *open_sink(int fd) {
  static struct sink sink;
  sink.fd = fd;
  sink.error = 0;
  return &sink;
}

static int finish(struct sink *sink) {
  put_text(sink, "\n");
  flush(sink);
  return sink->error;
}

int result_write(const struct result *result, int fd) {
  struct sink *sink = open_sink(fd);
  struct entry entry;
  if (!launchfile_find(result->file, V_RESULT, &entry)) return EBADMSG;
  switch (form_named(entry.word[0])) {
    case FORM_NATIVE: put_native(sink, result, entry.word[1]); break;
    case FORM_SHELL: put_shell(sink, result); break;
    case FORM_TASK: put_task(sink, result); break;
    case FORMS: return EBADMSG;
  }
  return finish(sink);
}

int result_write_record(const struct result *result, const struct audit_line *line, int fd) {
  struct sink *sink = open_sink(fd);
  struct entry entry;
  if (!launchfile_find(result->file, V_AUDIT, &entry)) return EBADMSG;
  put_record(sink, result, line, entry.word[1]);
  return finish(sink);
}
