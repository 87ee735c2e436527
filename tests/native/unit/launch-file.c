#include "lib/launch-file.h"
#include "unit.h"

static struct launchfile file;
static const char *problem;

/* A copy of exactly that size, so that the sanitizer sees a byte too far. Kept, as the reader keeps it. */
static int check(const char *bytes, size_t size) {
  char *copy = malloc(size ? size : 1);
  memcpy(copy, bytes, size);
  problem = NULL;
  return launchfile_check(copy, size, &file, &problem);
}

#define MAGIC LAUNCH_FILE_MAGIC "\0"

UNIT("a launch file with nothing but its ends is sound and has no records") {
  EXPECT_NUMBER(check(BYTES(MAGIC "end")), 0);
  EXPECT_NUMBER(file.count, 0);
}

UNIT("a launch file that is damaged is refused with the reason") {
  static const struct {
    const char *bytes;
    size_t size;
    const char *says;
  } ROWS[] = {
      {BYTES(""), "not a launch file of this version"},
      {"", 0, "not a launch file of this version"},
      {BYTES("llm-do-launch-1\0end"), "not a launch file of this version"},
      {LAUNCH_FILE_MAGIC, sizeof LAUNCH_FILE_MAGIC - 1, "not a launch file of this version"},
      {BYTES(LAUNCH_FILE_MAGIC), "no end entry"},
      {BYTES(MAGIC "net\0none"), "no end entry"},
      {BYTES(MAGIC "nets\0none\0end"), "unknown verb"},
      {BYTES(MAGIC "\0end"), "unknown verb"},
      {BYTES(MAGIC "zone\0/a\0/a\0rw\0" "1\0" "2"), "missing word"},
      {MAGIC "net\0none\0end", sizeof(MAGIC "net\0none\0end") - 1, "no end entry"},
      {BYTES(MAGIC "end\0"), "bytes after the end entry"},
      {BYTES(MAGIC "end\0net\0none\0end"), "bytes after the end entry"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    EXPECT_NUMBER(check(ROWS[i].bytes, ROWS[i].size), -1);
    EXPECT_TEXT(problem, ROWS[i].says);
  }
}

UNIT("records are read in order, with their words, and the end of each is known") {
  struct entry entry;
  size_t position = 0;
  EXPECT_NUMBER(check(BYTES(MAGIC "net\0none\0tmpfs\0/tmp\0" "100\0" "7\0" "1777\0word\0\0end")), 0);
  EXPECT(launchfile_next(&file, &position, &entry) && entry.verb == V_NET);
  EXPECT_TEXT(entry.word[0], "none");
  EXPECT_TEXT(entry.end, "tmpfs");
  EXPECT(launchfile_next(&file, &position, &entry) && entry.verb == V_TMPFS);
  EXPECT_TEXT(entry.word[3], "1777");
  EXPECT(launchfile_next(&file, &position, &entry) && entry.verb == V_WORD);
  EXPECT_TEXT(entry.word[0], "");
  EXPECT(!launchfile_next(&file, &position, &entry));
}

UNIT("the first record of a verb is found, and a missing one is not") {
  struct entry entry;
  EXPECT_NUMBER(check(BYTES(MAGIC "set\0a\0" "1\0set\0b\0" "2\0end")), 0);
  EXPECT(launchfile_find(&file, V_SET, &entry));
  EXPECT_TEXT(entry.word[0], "a");
  EXPECT(!launchfile_find(&file, V_NARROW, &entry));
}

UNIT("the records of one verb are read in order, whatever stands between them") {
  struct entry entry;
  size_t position = 0;
  EXPECT_NUMBER(check(BYTES(MAGIC "net\0none\0set\0a\0" "1\0word\0\0set\0b\0" "2\0word\0\0end")), 0);
  EXPECT(launchfile_next_of(&file, V_SET, &position, &entry));
  EXPECT_TEXT(entry.word[0], "a");
  EXPECT(launchfile_next_of(&file, V_SET, &position, &entry));
  EXPECT_TEXT(entry.word[0], "b");
  EXPECT(!launchfile_next_of(&file, V_SET, &position, &entry));
  EXPECT(!launchfile_next_of(&file, V_NARROW, &position, &entry));
}

UNIT("a file that was not read has no records") {
  struct launchfile none = {0};
  struct entry entry;
  EXPECT(!launchfile_find(&none, V_NET, &entry));
}

UNIT("a file of more records than a block of them has room for is read whole") {
  static char bytes[16 + 600 * 9 + 4];
  size_t at = sizeof LAUNCH_FILE_MAGIC;
  memcpy(bytes, LAUNCH_FILE_MAGIC, at);
  for (int i = 0; i < 600; i++, at += 9) memcpy(bytes + at, "net\0none", 9);
  memcpy(bytes + at, "end", 4);
  EXPECT_NUMBER(check(bytes, at + 4), 0);
  struct entry entry;
  size_t position = 0, count = 0;
  while (launchfile_next(&file, &position, &entry)) count++, EXPECT_TEXT(entry.word[0], "none");
  EXPECT_NUMBER(count, 600);
  EXPECT_NUMBER(entry.end - file.bytes, at);
}

UNIT("a number is decimal digits and nothing else, up to its greatest") {
  static const struct {
    const char *text;
    uint64_t max;
    long long want; /* -1 = refused */
  } ROWS[] = {
      {"0", 9, 0},      {"9", 9, 9},      {"10", 9, -1},    {"007", 9, 7},    {"", 9, -1},     {" 1", 9, -1},
      {"1 ", 9, -1},    {"+1", 9, -1},    {"-1", 9, -1},    {"0x1", 9, -1},   {"1.0", 9, -1},  {"1e0", 9, -1},
      {"9223372036854775807", INT64_MAX, INT64_MAX},        {"9223372036854775808", INT64_MAX, -1},
      {"18446744073709551616", UINT64_MAX, -1},             {"99999999999999999999999", UINT64_MAX, -1},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    uint64_t number = 0;
    int status = parse_number(ROWS[i].text, ROWS[i].max, &number);
    EXPECT_NUMBER(status < 0 ? -1 : (long long)number, ROWS[i].want);
  }
}

UNIT("permission bits are octal, without set-id bits") {
  static const struct {
    const char *text;
    int want;
  } ROWS[] = {{"0", 0}, {"755", 0755}, {"1777", 01777}, {"2755", -1}, {"4755", -1}, {"8", -1}, {"79", -1}, {"-1", -1}, {"", -1}};
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    unsigned mode = 0;
    EXPECT_NUMBER(parse_mode(ROWS[i].text, &mode) < 0 ? -1 : (int)mode, ROWS[i].want);
  }
}

/* `sent` bytes through a pipe; more than a pipe holds would wait for a reader. */
static char *read_sent(size_t sent, size_t limit, size_t *size) {
  static char bytes[60000];
  int ends[2];
  if (pipe(ends) < 0) return NULL;
  memset(bytes, 'x', sizeof bytes);
  EXPECT_NUMBER(write(ends[1], bytes, sent), sent);
  close(ends[1]);
  char *all = read_all(ends[0], limit, size);
  int error = errno;
  close(ends[0]);
  errno = error;
  return all;
}

UNIT("all of a pipe is read, up to the limit and not a byte more") {
  size_t size;
  char *all = read_sent(0, 10, &size);
  EXPECT(all && size == 0);
  free(all);
  all = read_sent(60000, 60000, &size);
  EXPECT(all && size == 60000 && all[59999] == 'x');
  free(all);
  EXPECT(!read_sent(60000, 59999, &size));
  EXPECT_NUMBER(errno, EFBIG);
}
