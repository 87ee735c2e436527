/*
 * Mounts over what is protected or hidden in a zone (lib/guard.h). The stager makes them in the tree; where a zone comes to a finished
 * sandbox, init does. Every function reports and ends the process when a step fails.
 */
#pragma once

#include "lib/guard.h"

/* A detached copy of what is mounted at `source` and below it. */
int cover_clone(int source, const char *path);
/* Sets attributes in all of a detached copy, and cuts it off from changes elsewhere. */
void cover_attributes(int tree, unsigned long long attributes, const char *path);

/* All covers of a zone, in which a command can rename where `is_writable`. `root`: the sandbox's "/", which has EMPTY_FILE and EMPTY_DIRECTORY
 * where something is hidden. */
void cover_zone(int root, int zone, const struct guard_zone *found, int is_writable);
/* An empty file or directory over one path, or the path over itself where it is a step to a hidden file. */
void cover_hide(int root, int zone, const struct guard_cover *path, int is_writable);
