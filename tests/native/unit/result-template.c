/* What the client writes, and when it needs words, is compared with node: tests/native/answer.system.test.ts. */
#include "client/foreseen-end.h"
#include "unit.h"

#include <string.h>

static struct launchfile file_of(const char *pieces, size_t size) {
  static char bytes[2048];
  struct launchfile file = {0};
  const char *problem;
  memcpy(bytes, LAUNCH_FILE_MAGIC, sizeof LAUNCH_FILE_MAGIC);
  memcpy(bytes + sizeof LAUNCH_FILE_MAGIC, pieces, size);
  EXPECT_NUMBER(launchfile_check(bytes, sizeof LAUNCH_FILE_MAGIC + size, &file, &problem), 0);
  return file;
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
