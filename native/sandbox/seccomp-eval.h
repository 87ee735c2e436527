/* Evaluates a seccomp filter for a system call, without asking the kernel. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

/* Does it let the call through whatever its arguments are? 0 also where that cannot be decided. */
int filter_lets_through(const struct sock_fprog *program, int number);
/* The same of a call whose first argument is `first`. */
int filter_lets_through_with(const struct sock_fprog *program, int number, uint64_t first);
