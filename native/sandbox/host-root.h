/*
 * A sandbox without namespaces: the command has the host's own tree, of which Landlock opens what the plan lists, and nothing else.
 *
 * Theory of operation. The stager makes a ruleset: the system tree and read-only zones can be read and executed, writable zones changed. A
 * rule holds for everything below its path and no rule takes anything away again, so in a zone that holds a covered path (lib/guard.h)
 * each entry next to the way to it gets a separate rule, and nothing can be made, renamed or removed in the directories on that way.
 * Root becomes another id. The ruleset goes to init as a descriptor, and the command's process puts it on itself.
 *
 * Init keeps its signals to a separate Landlock domain. The command's domain lies in it, so kill(-1) by init reaches every process
 * of the run, however far it has gone from its parents, and no other one.
 */
#pragma once

#include "sandbox/root-fs.h"

/* Opens a device that the plan names, and compares it with what was planned; fails where it is another one. */
int host_root_open_node(const struct entry *entry);
/* The stager's. Becomes init, or reports and ends with 125. */
_Noreturn void host_root_stage(const struct stage *stage);
