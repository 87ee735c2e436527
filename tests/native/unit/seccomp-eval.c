/* Filters as a whole: tests/native/filter.system.test.ts. */
#include "sandbox/seccomp-eval.h"
#include "unit.h"

#include <linux/seccomp.h>

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define IF(test, k, yes, no) BPF_JUMP(BPF_JMP | test | BPF_K, k, yes, no)
#define ANSWER(k) BPF_STMT(BPF_RET | BPF_K, k)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)
#define DENY ANSWER(SECCOMP_RET_ERRNO | 1)

#define PROGRAM(...)                                     \
  struct sock_filter steps[] = {__VA_ARGS__};            \
  struct sock_fprog program = {COUNT(steps), steps}

UNIT("a filter lets a number through that it answers with allow") {
  PROGRAM(LOAD(NUMBER), IF(BPF_JEQ, 7, 0, 1), DENY, ALLOW);
  EXPECT(!filter_lets_through(&program, 7));
  EXPECT(filter_lets_through(&program, 8));
}

UNIT("each comparison of a filter is evaluated just below, at and above its value") {
  static const struct {
    unsigned test, k;
    int number, goes;
  } ROWS[] = {
      {BPF_JEQ, 5, 5, 1}, {BPF_JEQ, 5, 6, 0}, {BPF_JGT, 5, 5, 0}, {BPF_JGT, 5, 6, 1}, {BPF_JGE, 5, 4, 0},
      {BPF_JGE, 5, 5, 1}, {BPF_JSET, 6, 1, 0}, {BPF_JSET, 6, 2, 1}, {BPF_JGT, 5, -1, 1},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    PROGRAM(LOAD(NUMBER), IF(ROWS[i].test, ROWS[i].k, 0, 1), ALLOW, DENY);
    EXPECT_NUMBER(filter_lets_through(&program, ROWS[i].number), ROWS[i].goes);
  }
}

UNIT("what depends on an argument is not let through, unless it is the first one and known") {
  PROGRAM(LOAD(ARGUMENT(0)), IF(BPF_JEQ, 3, 0, 3), LOAD(ARGUMENT(0) + 4), IF(BPF_JEQ, 1, 0, 1), ALLOW, DENY);
  EXPECT(!filter_lets_through(&program, 1));
  EXPECT(filter_lets_through_with(&program, 1, (1ull << 32) | 3));
  EXPECT(!filter_lets_through_with(&program, 1, 3));
  EXPECT(!filter_lets_through_with(&program, 1, (1ull << 32) | 4));
}

UNIT("what depends on another argument is never let through") {
  PROGRAM(LOAD(ARGUMENT(1)), IF(BPF_JEQ, 0, 0, 0), ALLOW);
  EXPECT(!filter_lets_through_with(&program, 1, 0));
}
