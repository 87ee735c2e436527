#include "sandbox/seccomp-eval.h"

#include "lib/filter-steps.h"

#include <stdint.h>

/* The target of a jump, or program->len for a step that is not a jump of seccomp. */
static size_t after(const struct sock_fprog *program, size_t at, uint32_t accumulator) {
  const struct sock_filter *step = &program->filter[at];
  int holds;
  switch (step->code) {
    case BPF_JMP | BPF_JA: return at + 1 + step->k;
    case BPF_JMP | BPF_JEQ | BPF_K: holds = accumulator == step->k; break;
    case BPF_JMP | BPF_JGT | BPF_K: holds = accumulator > step->k; break;
    case BPF_JMP | BPF_JGE | BPF_K: holds = accumulator >= step->k; break;
    case BPF_JMP | BPF_JSET | BPF_K: holds = (accumulator & step->k) != 0; break;
    default: return program->len;
  }
  return at + 1 + (holds ? step->jt : step->jf);
}

/* The word of seccomp_data that lies at `at`. Returns 0 for one that is not known. */
static int known_word(size_t at, int number, const uint64_t *first, uint32_t *word) {
  const size_t argument = offsetof(struct seccomp_data, args);
  if (at == offsetof(struct seccomp_data, nr)) *word = (uint32_t)number;
  else if (at == offsetof(struct seccomp_data, arch)) *word = OUR_ARCHITECTURE;
  else if (first && at == argument) *word = (uint32_t)*first; /* both of our machines are little-endian */
  else if (first && at == argument + sizeof(uint32_t)) *word = (uint32_t)(*first >> 32);
  else return 0;
  return 1;
}

/* Jumps go forward only, so this ends. What depends on another argument, or is calculated in a way that ours are not, is not decided. */
static int lets_through(const struct sock_fprog *program, int number, const uint64_t *first) {
  uint32_t accumulator = 0;
  for (size_t at = 0; at < program->len;) {
    const struct sock_filter *step = &program->filter[at];
    if (step->code == (BPF_RET | BPF_K)) return step->k == SECCOMP_RET_ALLOW;
    if (step->code != (BPF_LD | BPF_W | BPF_ABS)) {
      at = after(program, at, accumulator);
      continue;
    }
    if (!known_word(step->k, number, first, &accumulator)) return 0;
    at++;
  }
  return 0;
}

int filter_lets_through(const struct sock_fprog *program, int number) { return lets_through(program, number, NULL); }

int filter_lets_through_with(const struct sock_fprog *program, int number, uint64_t first) { return lets_through(program, number, &first); }
