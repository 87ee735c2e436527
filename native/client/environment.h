/* The environment of the command: the rules of a cached launch file, applied to ours. src/launch-cache/cached-launch.ts writes them. */
#pragma once

#include "lib/launch-file.h"

/* By the V_VARIABLE, V_LOCALE and V_INHERIT records of a checked file, sorted by name. NULL when memory is short: then node does it. */
char **command_environment(const struct launchfile *file);
