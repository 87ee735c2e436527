/* The client's output, and the cases in which Node reports instead, are compared with Node: tests/native/answer.system.test.ts. */
#include "client/result.h"
#include "unit.h"

UNIT("a result is sound when its form is known and output is kept for it") {
  static const struct {
    const char *pieces;
    size_t size;
    int want;
  } ROWS[] = {
      {BYTES("end"), 1},
      {BYTES("capture\0all\0result\0native\0\"a\":1\0end"), 1},
      {BYTES("capture\0all\0result\0task\0\0end"), 1},
      {BYTES("result\0native\0\0end"), 0},
      {BYTES("capture\0all\0end"), 0},
      {BYTES("capture\0all\0result\0nothing\0\0end"), 0},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    struct launchfile file = unit_launchfile(ROWS[i].pieces, ROWS[i].size);
    EXPECT_NUMBER(result_is_sound(&file), ROWS[i].want);
  }
}

#define ENDED(reason, exit) "{\"reason\":\"" reason "\",\"code\":\"\",\"exitCode\":" exit ",\"signal\":0,\"exitStatus\":1,"

static const char *printed(const char *pieces, size_t size, const char *status, char *program) {
  static char text[512];
  struct launchfile file = unit_launchfile(pieces, size);
  struct capture capture = {.is_on = 0};
  char *command[] = {program, NULL};
  struct result result = {.file = &file, .status = status, .command = command, .capture = &capture};
  int ends[2];
  if (result_read(&result) < 0 || !result_is_known(&result) || pipe(ends) < 0) return "Node";
  result_print(&result, ends[1]);
  close(ends[1]);
  ssize_t got = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  text[got < 0 ? 0 : got] = 0;
  return text;
}

UNIT("people read the plan's words, with what was killed, and the hint; a name that does not print is left to Node") {
  static char program[] = "prog", odd[] = "\033[31m";
#define LATE BYTES("reason\0timeout\0stopped after 1s\0raise it\0end")
  EXPECT_TEXT(printed(LATE, ENDED("timeout", "-1") "\"killed\":1}", program), "llm-do: stopped after 1s; 1 process killed\nllm-do: hint: raise it\n");
  EXPECT_TEXT(printed(LATE, ENDED("timeout", "-1") "\"killed\":2}", program), "llm-do: stopped after 1s; 2 processes killed\nllm-do: hint: raise it\n");
  EXPECT_TEXT(printed(LATE, ENDED("cpu-time", "-1") "\"killed\":0}", program), "Node");
  EXPECT_TEXT(printed(BYTES("end"), ENDED("exit", "1") "\"killed\":0}", program), "");
  EXPECT_TEXT(printed(BYTES("end"), ENDED("cancelled", "-1") "\"cancelledBy\":15,\"killed\":0}", program), "llm-do: cancelled by SIGTERM\n");
#define NO_EXEC "{\"reason\":\"setup\",\"code\":\"COMMAND_NOT_EXECUTABLE\",\"exitCode\":-1,\"signal\":0,\"exitStatus\":126,\"errno\":13,\"step\":\"execve\",\"detail\":\"\"}"
  EXPECT_TEXT(printed(BYTES("end"), NO_EXEC, program),
              "llm-do: error COMMAND_NOT_EXECUTABLE: prog: permission denied\nllm-do: hint: give it the execute bit (chmod +x), or run it through its interpreter\n");
  EXPECT_TEXT(printed(BYTES("end"), NO_EXEC, odd), "Node");
}

/* Stream 0 is stdout, 1 is stderr. */
static int tells_by(int stream, const char *status, const char *text) {
  struct launchfile file = unit_launchfile(BYTES("bind\0/usr\0/usr\0end"));
  struct capture capture = {.is_on = 1};
  capture.stream[stream] = (struct stream){.bytes = (char *)(uintptr_t)text, .seen = strlen(text), .head = strlen(text)};
  struct result result = {.file = &file, .status = status, .command = (char *[]){NULL}, .capture = &capture};
  EXPECT_NUMBER(result_read(&result), 0);
  return result_needs_words(&result);
}

UNIT("the output of a command that ends well tells of a lost file by a path of scratch and a word for writing") {
  static const char FAILED[] = ENDED("exit", "1"), WELL[] = ENDED("exit", "0");
  EXPECT_NUMBER(tells_by(0, WELL, "saved to /home/sandbox/report.txt\n"), 1);
  EXPECT_NUMBER(tells_by(0, WELL, "Wrote /tmp/out.csv"), 1);
  EXPECT_NUMBER(tells_by(0, WELL, "reading /tmp/in.csv\n"), 0);
  EXPECT_NUMBER(tells_by(0, WELL, "wrote /workspace/out.csv\n"), 0);
  EXPECT_NUMBER(tells_by(0, FAILED, "Wrote /tmp/out.csv"), 0);
}

UNIT("stderr of a failed command tells of a refusal by the kernel's words, or by a path that is here and not inside") {
  static const char FAILED[] = ENDED("exit", "1"), WELL[] = ENDED("exit", "0");
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
    EXPECT_NUMBER(tells_by(1, FAILED, ROWS[i].text), ROWS[i].want);
    EXPECT_NUMBER(tells_by(1, WELL, ROWS[i].text), 0);
  }
}

UNIT("of a long stderr only the end is looked at") {
  static char text[40 << 10];
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "EROFS ", 6);
  EXPECT_NUMBER(tells_by(1, ENDED("exit", "1"), text), 0);
  memcpy(text + sizeof text - 8, " EROFS ", 7);
  EXPECT_NUMBER(tells_by(1, ENDED("exit", "1"), text), 1);
}
