/* The environment of the command: the rules of a cached launch file, applied to ours. src/launch-cache/cached-launch.ts writes them. */
#pragma once

#include "lib/launch-file.h"

/* By the V_VARIABLE, V_GIVEN, V_LOCALE and V_INHERIT records of a checked file, sorted by name. `given` are the NAME=VALUE that the caller's words
 * hold, ended by NULL. NULL when one that the file wants is not among them, or memory is short: then node does it. */
char **command_environment(const struct launchfile *file, char *const *given);

/* Does no rule of the file know one of these names? */
int given_are_unknown(const struct launchfile *file, char *const *given);

/* Has the caller none of the variables that would have made it another plan (V_UNSET records)? */
int variables_are_unset(const struct launchfile *file);
