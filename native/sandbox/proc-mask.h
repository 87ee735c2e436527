/* Hides the host in /proc: a command sees only the sandbox's own there. */
#pragma once

#include "lib/launch-file.h"

/*
 * Makes the paths of /proc that the launch file names read-only, or covers them. /proc is that of the caller, who needs CAP_SYS_ADMIN
 * over its mount namespace. Ends the process with a report when a step fails.
 */
void proc_cover(const struct launchfile *file);

/* Shows files of the tree, which is "/" by now, in the place of some of /proc: after proc_cover(), for the same caller. */
void proc_show(const struct launchfile *file);
