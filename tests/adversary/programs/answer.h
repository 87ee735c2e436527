/* One line for each attempt: what was tried, a blank, `done` or the name of the error. */
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

static inline long answer(const char *what, long result) {
  printf("%s %s\n", what, result >= 0 ? "done" : strerrorname_np(errno));
  fflush(stdout);
  return result;
}
