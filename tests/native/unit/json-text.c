#include "lib/json-text.h"
#include "unit.h"

UNIT("a word is a JSON string whatever its bytes are") {
  static const struct {
    const char *text, *want;
  } ROWS[] = {
      {"", "\"\""},
      {"/tmp/a b", "\"/tmp/a b\""},
      {"a\"b\\c", "\"a\\\"b\\\\c\""},
      {"\n\t\x01\x1f", "\"\\u000a\\u0009\\u0001\\u001f\""},
      {"\x7f", "\"\x7f\""},
      {"\xc3\xa9", "\"\xc3\xa9\""},
      {"\xff", "\"\xff\""},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char *got;
    size_t size;
    FILE *out = open_memstream(&got, &size);
    put_json(out, ROWS[i].text);
    fclose(out);
    EXPECT_TEXT(got, ROWS[i].want);
    free(got);
  }
}
