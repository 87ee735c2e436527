/*
 * What the rules of a worker say of a command, by the V_DEFAULT, V_RULE and V_TOKEN entries of its plan (src/worker/compile.ts).
 * src/worker/rules.ts is the whole of it; here is judged what needs no more than comparing words: everything else is node's to judge, to
 * ask a person about and to explain. A wrong answer may only be "not here".
 */
#pragma once

#include "lib/launch-file.h"

/* What decided, for the audit log, when the plan is under no worker or its rules let the command run; `script` is the text of -c, or NULL.
 * NULL: node judges. */
const char *rules_let_run(const struct launchfile *file, const char *script, char **command);
