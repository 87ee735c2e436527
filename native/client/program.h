/*
 * The program that a command names, as the caller's shell would find it, and whether the plan of a run depends on it.
 *
 * A plan differs by its program in one thing: the toolchain that the program belongs to is shown. Each pattern of a toolchain holds one
 * of TOOLCHAIN_WORDS (tests/launch-cache/program.test.ts), so a program whose path has none of them, or that is not there at all, is
 * served by the plan that all others share. src/launch-cache/program.ts decides the same from what planning has seen. A plan that is
 * shared shows no toolchain for its program, so a wrong answer here could hide a file and never show one.
 */
#pragma once

#include "lib/launch-file.h"

#include <limits.h>

struct program {
  const char *key;     /* word of the launch cache's key: KEY_ANY_PROGRAM, or the name */
  char real[PATH_MAX]; /* its canonical path where the plan is shared; empty when the program does not exist */
};

/* `path` is the caller's PATH, `name` the first word of the command. */
void program_find(const char *name, const char *path, struct program *program);

/* Does the sandbox of this plan show it? If not, node has a warning to print. */
int program_is_shown(const struct program *program, const struct launchfile *file);
