#include "lib/git-config.h"
#include "unit.h"

static int write_down(void *data, const char *key, const char *value) {
  char *text = data;
  size_t used = strlen(text);
  snprintf(text + used, 1000 - used, "%s=%s|", key, value ? value : "(null)");
  return 0;
}

UNIT("git's configuration is read as git reads it") {
  /* Output of git 2.39 for each by `git config --file FILE --list -z`. */
  static const struct {
    const char *text, *values;
  } ROWS[] = {
      {"", ""},
      {"[core]\n\thooksPath = tools/hooks\n", "core.hookspath=tools/hooks|"},
      {"[Core]HooksPath=a b  # c\n", "core.hookspath=a b|"},
      {"[a \"B.c\"]\nx\ny=\n", "a.B.c.x=(null)|a.B.c.y=|"},
      {"[a \"q\\\"\\x\"] k = \"  v ; \" ; c\n", "a.q\"x.k=  v ; |"},
      {"[a.B]\nk = one\\\n  two\n", "a.b.k=one  two|"},
      {"[a]\r\nk = v\r\n", "a.k=v|"},
      {"\xef\xbb\xbf[a]\nk = v", "a.k=v|"},
      {"# [x]\n; y\n[a] # z\nk-1 = \\t\\\"\\\\ x\n", "a.k-1=\t\"\\ x|"},
      {"[a]\nk = \"one\" two\" three \"\n", "a.k=one two three |"},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char values[1000] = "";
    EXPECT_NUMBER(git_config_read(ROWS[i].text, strlen(ROWS[i].text), write_down, values), 0);
    EXPECT_TEXT(values, ROWS[i].values);
  }
}

UNIT("what git refuses is refused") {
  static const char *const ROWS[] = {"[", "[a", "[a b]\n", "[a \"b\n\"]\n", "[a \"b\"x]\n", "[a]\n= v\n", "[a]\n1 = v\n", "[a]\nk v\n", "[a]\nk = \"v\n", "[a]\nk = \\q\n", "[a_b]\n"};
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char values[1000] = "";
    EXPECT_NUMBER(git_config_read(ROWS[i], strlen(ROWS[i]), write_down, values), -1);
    EXPECT_NUMBER(errno, EBADMSG);
  }
}
