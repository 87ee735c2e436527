#include "client/foreseen-end.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An answer to be written: pieces of a launch file, the report of launch, what was printed. */
struct answer {
  const char *pieces;
  size_t size;
  const char *status, *out, *err;
  char **command;
};

static struct launchfile file_of(const char *pieces, size_t size) {
  static char bytes[2048];
  struct launchfile file = {0};
  const char *problem;
  memcpy(bytes, LAUNCH_FILE_MAGIC, sizeof LAUNCH_FILE_MAGIC);
  memcpy(bytes + sizeof LAUNCH_FILE_MAGIC, pieces, size);
  EXPECT_NUMBER(launchfile_check(bytes, sizeof LAUNCH_FILE_MAGIC + size, &file, &problem), 0);
  return file;
}

static struct stream stream_of(const char *text) {
  size_t size = text ? strlen(text) : 0;
  return (struct stream){.ours = -1, .theirs = -1, .bytes = (char *)(uintptr_t)(text ? text : ""), .room = size, .head = 1 << 20, .seen = size};
}

static void expect_written(struct answer answer, const char *want) {
  static char got[4096];
  char *none[] = {NULL};
  struct launchfile file = file_of(answer.pieces, answer.size);
  struct capture capture = {.is_on = 1, .stream = {stream_of(answer.out), stream_of(answer.err)}};
  struct result result = {.file = &file, .status = answer.status, .command = answer.command ? answer.command : none, .capture = &capture, .end = &EXIT};
  int ends[2];
  if (pipe(ends) < 0) abort();
  EXPECT_NUMBER(template_write(&result, V_RESULT, ends[1]), 0);
  close(ends[1]);
  ssize_t size = read(ends[0], got, sizeof got - 1);
  close(ends[0]);
  got[size < 0 ? 0 : size] = 0;
  EXPECT_TEXT(got, want);
}

#define ANSWER(pieces_, ...) (struct answer){.pieces = pieces_, .size = sizeof(pieces_), __VA_ARGS__}

UNIT("a piece of the answer is written as it is, then what belongs in its hole") {
  expect_written(ANSWER("result\0{\"ok\":\0ok\0result\0,\"code\":\0exit-code\0result\0}\0end\0end", .status = "\"waitStatus\":768,"), "{\"ok\":false,\"code\":3}\n");
}

UNIT("thousandths are printed as JavaScript prints them") {
  static const struct {
    const char *status, *want;
  } ROWS[] = {
      {"\"cpuUs\":0,", "0\n"},     {"\"cpuUs\":1,", "0.001\n"}, {"\"cpuUs\":10,", "0.01\n"},       {"\"cpuUs\":1000,", "1\n"},
      {"\"cpuUs\":1302,", "1.302\n"}, {"\"cpuUs\":1200,", "1.2\n"}, {"\"cpuUs\":100000,", "100\n"}, {"\"cpuUs\":-1,", "0\n"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++)
    expect_written(ANSWER("result\0\0cpu-time\0result\0\0end\0end", .status = ROWS[i].status), ROWS[i].want);
}

UNIT("a duration is rounded to microseconds, and a run that never started lasted no time") {
  static const char BOTH[] = "result\0\0setup\0result\0 \0duration\0result\0 \0whole-duration\0result\0\0end\0end";
  expect_written(ANSWER(BOTH, .status = "\"begunNs\":1000,\"startedNs\":2499,\"endedNs\":1002999,"), "0.001 1.001 1\n");
  expect_written(ANSWER(BOTH, .status = "\"begunNs\":1000,\"startedNs\":0,\"endedNs\":3500,"), "0.003 0 0\n");
}

UNIT("a counter without a value has no key") {
  static const char COUNTED[] = "result\0x\0peak-pids\0result\0\0read-bytes\0result\0\0end\0end";
  expect_written(ANSWER(COUNTED, .status = "\"peakPids\":0,\"readBytes\":-1,"), "x\n");
  expect_written(ANSWER(COUNTED, .status = "\"peakPids\":2,\"readBytes\":0,"), "x,\"peakPids\":2,\"readBytes\":0\n");
}

UNIT("output is escaped as JSON.stringify does, and both line separators") {
  static const char OUT[] = "result\0\0stdout\0result\0\0end\0end";
  static const struct {
    const char *text, *want;
  } ROWS[] = {
      {"", "\"\"\n"},
      {"a\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"\n"},
      {"\xe2\x80\xa8\xe2\x80\xa9", "\"\\u2028\\u2029\"\n"},
      {"\xe2\x80\xa7\xe2\x80\xaa", "\"\xe2\x80\xa7\xe2\x80\xaa\"\n"},
      {"\xe2\x80", "\"\xe2\x80\"\n"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) expect_written(ANSWER(OUT, .status = "", .out = ROWS[i].text), ROWS[i].want);
}

UNIT("the command is a list of strings") {
  static const char COMMAND[] = "result\0\0command\0result\0\0end\0end";
  expect_written(ANSWER(COMMAND, .status = "", .command = (char *[]){"sh", "-c", "echo \"x\"", "", NULL}), "[\"sh\",\"-c\",\"echo \\\"x\\\"\",\"\"]\n");
  expect_written(ANSWER(COMMAND, .status = ""), "[]\n");
}

UNIT("an answer is sound when its pieces are known, it ends once and at the end, and output is kept for it") {
  static const struct {
    const char *pieces;
    size_t size;
    int want;
  } ROWS[] = {
      {BYTES("end"), 1},
      {BYTES("capture\0all\0result\0{}\0end\0end"), 1},
      {BYTES("result\0{}\0end\0end"), 0},
      {BYTES("capture\0all\0end"), 0},
      {BYTES("capture\0all\0result\0{}\0ok\0end"), 0},
      {BYTES("capture\0all\0result\0{}\0nothing\0end"), 0},
      {BYTES("capture\0all\0result\0{}\0end\0result\0{}\0end\0end"), 0},
      {BYTES("capture\0all\0result\0{}\0time\0result\0\0end\0end"), 0}, /* only in the audit log */
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    struct launchfile file = file_of(ROWS[i].pieces, ROWS[i].size);
    EXPECT_NUMBER(result_is_sound(&file), ROWS[i].want);
  }
}

static int is_text(const char *out, char *word) {
  struct capture capture = {.is_on = 1, .stream = {stream_of(out), stream_of("")}};
  char *command[] = {word, NULL};
  return result_is_text(&(struct result){.capture = &capture, .command = command});
}

UNIT("text is what the Unicode standard calls well-formed UTF-8, in output and command") {
  static const struct {
    const char *bytes;
    int want;
  } ROWS[] = {
      {"plain\x7f", 1},       {"\xc2\x80", 1},          {"\xc1\xbf", 0},          {"\x80", 0},              {"\xc3", 0},
      {"\xe0\xa0\x80", 1},    {"\xe0\x9f\xbf", 0},      {"\xed\x9f\xbf", 1},      {"\xed\xa0\x80", 0},      {"\xef\xbf\xbf", 1},
      {"\xf0\x90\x80\x80", 1}, {"\xf0\x8f\xbf\xbf", 0}, {"\xf4\x8f\xbf\xbf", 1}, {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0},
      {"\xf0\x90\x80", 0},    {"\xe2\x82z", 0},         {"a\xff", 0},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    EXPECT_NUMBER(is_text(ROWS[i].bytes, "x"), ROWS[i].want);
    EXPECT_NUMBER(is_text("x", (char *)(uintptr_t)ROWS[i].bytes), ROWS[i].want);
  }
}

UNIT("a run needs words when it did not end by itself, met a limit or may deserve a hint") {
  static const struct {
    const char *status;
    int want;
  } ROWS[] = {
      {"{\"cause\":\"exit\",\"waitStatus\":0,\"oomKills\":0,\"pidsRefused\":-1,", 1},
      {"{\"cause\":\"exit\",\"waitStatus\":256,\"oomKills\":0,\"pidsRefused\":-1,", 1},
      {"{\"cause\":\"exit\",\"waitStatus\":9,", 0},
      {"{\"cause\":\"exit\",\"waitStatus\":-1,", 0},
      {"{\"cause\":\"exit\",", 0},
      {"{\"cause\":\"deadline\",\"waitStatus\":0,", 0},
      {"{\"cause\":\"exit\",\"waitStatus\":0,\"oomKills\":1,", 0},
      {"{\"cause\":\"exit\",\"waitStatus\":0,\"pidsRefused\":1,", 0},
      {"{\"cause\":\"exit\",\"waitStatus\":0,\"setIds\":1,", 0},
      {"{\"cause\":\"exit\",\"waitStatus\":0,\"configLocked\":true", 1},
      {"{\"cause\":\"exit\",\"waitStatus\":256,\"configLocked\":true", 0},
  };
  struct launchfile file = file_of(BYTES("end"));
  char *command[] = {"false", NULL};
  for (size_t i = 0; i < COUNT(ROWS); i++)
    EXPECT_NUMBER(result_needs_no_words(&(struct result){.file = &file, .status = ROWS[i].status, .command = command}), ROWS[i].want);
}

UNIT("a failed command that names a path of the host which is not shown inside needs words") {
  static const char FAILED[] = "{\"cause\":\"exit\",\"waitStatus\":256,";
  static const struct {
    const char *word;
    int want;
  } ROWS[] = {{"/var", 0}, {"/etc/passwd", 1}, {"/usr/bin", 1}, {"/usrx", 1}, {"/no/such/path", 1}, {"/", 1}, {"/proc/self", 1}, {"etc", 1}};
  struct launchfile file = file_of(BYTES("bind\0/usr\0/usr\0end"));
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char *command[] = {"cat", (char *)(uintptr_t)ROWS[i].word, NULL};
    EXPECT_NUMBER(result_needs_no_words(&(struct result){.file = &file, .status = FAILED, .command = command}), ROWS[i].want);
  }
}

static int tells(const char *status, const char *text) {
  struct launchfile file = file_of(BYTES("bind\0/usr\0/usr\0end"));
  struct capture capture = {.is_on = 1};
  capture.stream[1] = (struct stream){.bytes = (char *)(uintptr_t)text, .seen = strlen(text), .head = strlen(text)};
  return result_tells_of_refusal(&(struct result){.file = &file, .status = status, .capture = &capture});
}

UNIT("stderr of a failed command tells of a refusal by the kernel's words, or by a path that is here and not inside") {
  static const char FAILED[] = "{\"cause\":\"exit\",\"waitStatus\":256,", WELL[] = "{\"cause\":\"exit\",\"waitStatus\":0,";
  static const struct {
    const char *text;
    int want;
  } ROWS[] = {
      {"", 0},
      {"error: 3 tests failed\n", 0},
      {"touch: cannot touch 'x': Read-only file system\n", 1},
      {"Error: EROFS: read-only file system, open 'x'\n", 1},
      {"dd: No space left on device\n", 1},
      {"cat: /var: No such file or directory\n", 1},
      {"see '/var'\n", 1},
      {"/var", 1},
      {"cat: /usr/nope: No such file or directory\n", 0},
      {"cat: /no/such/path: No such file or directory\n", 0},
      {"https://var/x a/var /\n", 0},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    EXPECT_NUMBER(tells(FAILED, ROWS[i].text), ROWS[i].want);
    EXPECT_NUMBER(tells(WELL, ROWS[i].text), 0);
  }
}

UNIT("of a long stderr only the end is looked at") {
  static char text[40 << 10];
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "EROFS ", 6);
  EXPECT_NUMBER(tells("{\"cause\":\"exit\",\"waitStatus\":256,", text), 0);
  memcpy(text + sizeof text - 8, " EROFS ", 7);
  EXPECT_NUMBER(tells("{\"cause\":\"exit\",\"waitStatus\":256,", text), 1);
}
