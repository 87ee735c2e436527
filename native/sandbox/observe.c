#include "sandbox/observe.h"

#include "lib/filter-steps.h"
#include "lib/observed-calls.h"
#include "lib/syscalls.h"

#include <errno.h>

/* Linux 5.19: once a call is with the observer, only a signal that kills ends its wait. Without, each signal handler would make it EINTR. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1ul << 5)
#endif

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (size_t)(n)) /* the low half, on little-endian machines */
#define STEPS_PER_CALL 7
#define STEPS_MAX 512

struct program {
  struct sock_filter step[STEPS_MAX];
  unsigned short length;
};

static void put(struct program *to, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf) {
  to->step[to->length++] = (struct sock_filter){code, jt, jf, k};
}

static void put_answer(struct program *to, uint32_t answer) { put(to, BPF_RET | BPF_K, answer, 0, 0); }

/* fstat of glibc is a look at a descriptor, and names no path. */
static void put_look(struct program *to, const struct observed_call *call) {
  put(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 4);
  put(to, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARGUMENT(call->flags), 0, 0);
  put(to, BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1);
  put_answer(to, SECCOMP_RET_ALLOW);
  put_answer(to, SECCOMP_RET_USER_NOTIF);
}

/* send is sendto, and futimens is utimensat, of no address. */
static void put_if_named(struct program *to, const struct observed_call *call) {
  put(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 6);
  put(to, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARGUMENT(call->path), 0, 0);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
  put(to, BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARGUMENT(call->path) + 4, 0, 0);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  put_answer(to, SECCOMP_RET_ALLOW);
  put_answer(to, SECCOMP_RET_USER_NOTIF);
}

static void put_call(struct program *to, const struct observed_call *call) {
  if (call->act == ACT_LOOK && call->flags >= 0) return put_look(to, call);
  if (call->act == ACT_CONNECT || call->act == ACT_CHANGE) return put_if_named(to, call);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 1);
  put_answer(to, SECCOMP_RET_USER_NOTIF);
}

static int write_program(struct program *to, int looks) {
  put(to, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
  put(to, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0);
  put_answer(to, SECCOMP_RET_ALLOW); /* what becomes of it the main filter says */
  put(to, BPF_LD | BPF_W | BPF_ABS, NUMBER, 0, 0);
  for (size_t i = 0; i < OBSERVED_CALLS; i++) {
    if (to->length + STEPS_PER_CALL >= STEPS_MAX) return errno = E2BIG, -1;
    if (looks || observed_calls[i].act != ACT_LOOK) put_call(to, &observed_calls[i]);
  }
  put_answer(to, SECCOMP_RET_ALLOW);
  return 0;
}

int observe_calls(int looks) {
  static struct program program;
  if (write_program(&program, looks) < 0) return -1;
  struct sock_fprog filter = {program.length, program.step};
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
  return listener < 0 && errno == EINVAL ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) : listener;
}
