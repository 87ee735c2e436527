/*
 * Judges a command by the rules of a worker, from the V_DEFAULT, V_RULE and V_TOKEN entries of its plan (src/worker/compile.ts).
 * src/worker/rules.ts has all of it; this file judges only by comparing words, and leaves everything else to node, which can
 * ask a person and explain. A wrong answer may only be "not here".
 */
#pragma once

#include "lib/launch-file.h"

/* The decider for the audit log, when the plan is under no worker or its rules let the command run; `script` is the text of -c, or NULL.
 * NULL: node judges. */
const char *rules_let_run(const struct launchfile *file, const char *script, char **command);
