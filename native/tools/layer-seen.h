/*
 * LAYER/seen: what the zones had at the paths that a command changed, when it ended. What the host removed later leaves no trace that a
 * time could be read from: such a change is new now, and was none then. Zone and path of each, ended by NUL.
 */
#pragma once

#include "tools/layer-list.h"

/* Marks what was removed since as a conflict. 0, or -1 with errno. */
int seen_compare(int layer, struct list *list);
/* Adds what the zones have now. 0, or -1 with errno. */
int seen_note(int layer, const struct list *list);
