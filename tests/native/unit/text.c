#include "lib/text.h"

#include "unit.h"

static const char *text_of(const char *written, size_t *size) {
  FILE *out = text_begin();
  fputs(written, out);
  return text_end(size);
}

UNIT("a text that is shorter than the one before ends where it ends") {
  size_t size = 0;
  EXPECT_TEXT(text_of("a longer text", &size), "a longer text");
  EXPECT_NUMBER(size, 13);
  EXPECT_TEXT(text_of("short", &size), "short");
  EXPECT_NUMBER(size, 5);
}

UNIT("a text has room for more than the buffer of a file") {
  static char many[20001];
  size_t size = 0;
  for (size_t i = 0; i + 1 < sizeof many; i++) many[i] = (char)('a' + i % 26);
  EXPECT_TEXT(text_of(many, &size), many);
  EXPECT_NUMBER(size, 20000);
  EXPECT_TEXT(text_of("x", &size), "x");
}
