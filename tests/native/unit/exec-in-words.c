#include "client/exec-in-words.h"
#include "lib/launch-file.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

UNIT("options of another command are read as they are written, and everything else is Node's") {
  static const struct {
    char *words[8];
    int want;
  } ROWS[] = {
      {{"--in", "n", "--", "c"}, 0},
      {{"--in=n", "c", "--rw", "."}, 0},
      {{"--in", "n", "--tty", "--timeout=5m", "--workdir=/w/x", "c"}, 0},
      {{"--in", "n", "--json=task", "--env=A=", "c"}, 0},
      {{"--in", "n"}, -1},
      {{"--in", "n", "--"}, -1},
      {{"--in"}, -1},
      {{"--in", "n", "--memory", "1g", "c"}, -1},
      {{"--in", "n", "-c", "c"}, 0},
      {{"--in", "n", "-lc", "c", "-x"}, 0},
      {{"--in", "n", "-c"}, -1},
      {{"--in", "n", "-c", "c", "--json"}, -1},
      {{"--in", "n", "-", "c"}, -1},
      {{"--in", "n", "--keep-state", "c"}, 0},
      {{"--in", "n", "--keep-state=reset", "c"}, 0},
      {{"--in", "n", "--keep-state=x", "c"}, -1},
      {{"--in", "n", "--json=no-form", "c"}, -1},
      {{"--in", "n", "--json", "--tty", "c"}, -1},
      {{"--in", "n", "--json", "\xff"}, -1},
      {{"--in", "n", "--workdir", "w", "c"}, -1},
      {{"--in", "n", "--workdir", "/w/../x", "c"}, -1},
      {{"--in", "n", "--workdir", "/w//x", "c"}, -1},
      {{"--in", "n", "--env", "=x", "c"}, -1},
      {{"--in", "n", "--workdir", "/w/", "c"}, -1},
      {{"--in", "n", "--workdir", "/", "c"}, 0},
      {{"--in", "n", "--env", "A*", "c"}, -1},
      {{"--in", "n", "--env", "1A=x", "c"}, -1},
      {{"--in", "n", "--env", "A-B=x", "c"}, -1},
      {{"--in", "n", "--env", "A=\xff", "c"}, -1},
      {{"--in", "n", "--env", "LLM_DO_SANDBOX=x", "c"}, -1},
      {{"--in", "n", "--env", "LLM_DO_SANDBOX_PROFILE", "c"}, -1},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    struct exec_in_words words = {.name = NULL};
    EXPECT_NUMBER(exec_in_read((char **)(uintptr_t)ROWS[i].words, &words), ROWS[i].want);
  }
}

UNIT("a time is a whole number with a unit, of at most 24 days") {
  static const struct {
    char *text;
    long long want; /* -1: Node's */
  } ROWS[] = {{"1ms", 1},    {"30s", 30000}, {"5m", 300000}, {"2h", 7200000},          {"2147483647ms", 2147483647}, {"2147483648ms", -1}, {"600h", -1}, {"0s", -1},
              {"1.5s", -1}, {"5", -1},      {"s", -1},      {"99999999999999999s", -1}, {"5 s", -1},                  {"none", -1}};
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    struct exec_in_words words = {.name = NULL};
    int done = exec_in_read(WORDS("--timeout", ROWS[i].text, "c"), &words);
    EXPECT_NUMBER(done < 0 ? -1 : (long long)words.timeout_ms, ROWS[i].want);
  }
}

UNIT("the block has each variable once, the last value of a name, and the directory behind them") {
  static const char WANT[] = "2\0" "4\0" "0\0" "c\0" "x y\0" "TERM=dumb\0" "PWD=/w\0" "A=2\0" "B=own\0" "/w";
  struct exec_in_words words = {.name = NULL};
  size_t size;
  setenv("TERM", "dumb", 1), setenv("A", "own", 1), setenv("B", "own", 1), unsetenv("C");
  EXPECT_NUMBER(exec_in_read(WORDS("--env", "A=1", "--env", "B", "--env", "C", "--env", "A=2", "--env", "A", "--workdir", "/w", "c", "x y"), &words), 0);
  int fd = exec_in_block(&words);
  char *block = read_all(fd, 4096, &size);
  EXPECT_NUMBER(size, sizeof WANT);
  EXPECT_NUMBER(block && size == sizeof WANT && memcmp(block, WANT, size) == 0, 1);
  close(fd);
}
