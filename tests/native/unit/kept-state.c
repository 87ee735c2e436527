#undef BASH
#include "lib/contract.h"
#undef BASH
#define BASH "/no/bash" /* of a sandbox without it */
#include "sandbox/kept-state.c"
#include "unit.h"

#include <sys/wait.h>

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

UNIT("a line of a shell is what -c takes, and nothing else") {
  static const struct {
    char *words[8];
    int line; /* which word, 0 = none */
  } ROWS[] = {
      {{"sh", "-c", "l"}, 2},           {{"/bin/bash", "-euc", "l", "name"}, 2}, {{"bash", "-eo", "pipefail", "-c", "l"}, 4}, {{"bash", "-c", "-e", "l"}, 3},
      {{"bash", "-c", "--", "l"}, 3},   {{"sh", "-lc", "l"}, 2},                 {{"sh", "file"}, 0},                         {{"sh"}, 0},
      {{"sh", "-c"}, 0},                {{"bash", "-ic", "l"}, 0},               {{"bash", "-pc", "l"}, 0},                   {{"bash", "--posix", "-c", "l"}, 0},
      {{"bash", "-c", "--", "-l"}, 0}, {{"bash", "-c", "-", "l"}, 0},           {{"dash", "-c", "l"}, 0},                    {{"bash", "-o"}, 0},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char **argv = (char **)(uintptr_t)ROWS[i].words, **line = line_of(argv);
    EXPECT_NUMBER(line ? line - argv : 0, ROWS[i].line);
  }
}

UNIT("a state is whole or none") {
#define ROW(is, bash, text) {text, sizeof text - 1, bash, is}
  static const struct {
    const char *bytes;
    size_t size;
    int bash, is;
  } ROWS[] = {
      ROW(1, 0, "0022\n\0/d\n\0A=1\0B=\0\0"), ROW(1, 1, "0022\n\0/d\nx\n\0A=1\0\0f\n" WHOLE), ROW(0, 1, "0022\n\0/d\n\0A=1\0\0f\n"), ROW(0, 0, "0022\n\0/d\n\0A=1\0\0" WHOLE),
      ROW(0, 0, ""), ROW(0, 0, "0022\n"), ROW(0, 0, "0022\n\0"), ROW(0, 0, "0022\n\0/d\n\0"), ROW(0, 0, "0022\n\0/d\n\0A=1\0"), ROW(0, 0, "0022\n\0/d\n\0\0"),
      ROW(0, 0, "0022\n\0/d\n\0A=1"), ROW(0, 0, "0022\n\0/d\0A=1\0\0"), ROW(0, 0, "0022\n\0d\n\0A=1\0\0"), ROW(0, 0, "0022\n\0\n\0A=1\0\0"), ROW(0, 0, "9999\n\0/d\n\0A=1\0\0"),
      ROW(0, 0, "7777\n\0/d\n\0A=1\0\0"), ROW(0, 0, "00000022\n\0/d\n\0A=1\0\0"), ROW(0, 0, "0022\n\0/d\n\0x\0\0"), ROW(0, 0, "0022\n\0/d\n\0=x\0\0"),
      ROW(0, 1, "0022\n\0/d\n\0A=1\0\0f\0" WHOLE), ROW(0, 0, "0022\n\0/d\n\0A=1\0\0\0"),
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char bytes[64];
    memcpy(bytes, ROWS[i].bytes, ROWS[i].size);
    EXPECT_NUMBER(is_whole(bytes, ROWS[i].size, ROWS[i].bash), ROWS[i].is);
  }
}

UNIT("where there is no bash, sh leaves directory, mask and variables") {
  struct kept_state state = KEPT_STATE_NONE;
  struct parts parts;
  struct command command = {.argv = WORDS("sh", "-ec", "cd /usr; umask 077; export A=\"it's\"; exit 7"), .env = WORDS("PATH=/usr/bin:/bin")};
  int status;
  kept_state_apply(&command, 0, &state);
  pid_t child = fork();
  if (child == 0) {
    dup2(state.places[0], STATE_FD_OUT);
    execve("/bin/sh", command.argv, command.env);
    _exit(1);
  }
  close(state.places[0]);
  EXPECT_NUMBER(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, 1);
  EXPECT_NUMBER(kept_state_take(0), 0);
  EXPECT_NUMBER(kept_state_pass(&state, 1), STATE_KEPT);
  EXPECT_NUMBER(kept_state_take(0), 0);
  EXPECT_NUMBER(split(kept.bytes, kept.size, &parts), 0);
  EXPECT_NUMBER(parts.umask, 077);
  EXPECT_TEXT(parts.directory, "/usr\n");
  struct command next = {.argv = WORDS("env"), .env = WORDS("PATH=/run", "LLM_DO_SANDBOX=own", "B=asked")};
  kept_state_apply(&next, 1, &state);
  EXPECT_TEXT(value_of(next.env, "A="), "it's");
  EXPECT_TEXT(value_of(next.env, "PATH="), "/usr/bin:/bin");
  EXPECT_TEXT(value_of(next.env, "PWD="), "/usr");
  EXPECT_TEXT(value_of(next.env, "LLM_DO_SANDBOX="), "own");
  EXPECT_TEXT(value_of(next.env, "B="), "asked");
}
