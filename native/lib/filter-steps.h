/* Steps of seccomp filters that we write by hand: rows of a table of struct sock_filter. */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filters know x86-64 and arm64"
#endif

/* A member of struct seccomp_data; of an argument the low half, on little-endian machines. */
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define ANSWER(answer) BPF_STMT(BPF_RET | BPF_K, answer)
/* Passes over so many steps where the loaded word is this one, and so many where it is another. */
#define SKIP_IF(word, is, is_not) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word, is, is_not)

/* First in a filter: calls of other machines end the process. From here on the number of the call is loaded. */
#define ONLY_OUR_CALLS LOAD(arch), SKIP_IF(OUR_ARCHITECTURE, 1, 0), ANSWER(SECCOMP_RET_KILL_PROCESS), LOAD(nr)
#define ALLOW(call) SKIP_IF(SYS_##call, 0, 1), ANSWER(SECCOMP_RET_ALLOW)
/* A call whose argument has none of these bits. */
#define ALLOW_WITHOUT(call, argument, bits, otherwise)                                                                  \
  SKIP_IF(SYS_##call, 0, 4), LOAD(args[argument]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1), ANSWER(otherwise), \
      ANSWER(SECCOMP_RET_ALLOW)
