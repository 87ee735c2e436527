/*
 * The walls around the observer, which reads input of a hostile command: another id where root called, with the right to look into
 * other processes and directories and no other one, bounds, and a list of system calls (anything else ends it). Landlock is not used: a process
 * under it may only look into those that it has started.
 */
#pragma once

#include <sys/types.h>

/* `id`: to be taken, 0 = the caller's own. Returns 0, or -1. */
int observer_confine(uid_t id);
