/*
 * A directory of ours in the root of a zone, `.llm-do-ID-K`, which is there while changes are applied or taken back. Only its owner, who
 * applies, can enter it. The time of the zone's root is kept.
 */
#pragma once

#include "tools/layer-changes.h"

/* Whether names can be renamed between the layer and the zone. 1, 0, or -1 with errno. */
int stage_is_needed(const struct layer *layer, size_t zone);
/* Makes it: EEXIST where the name is taken. Its descriptor, or -1 with errno. */
int stage_make(const struct layer *layer, size_t zone, unsigned number);
/* That of an earlier call: ENOENT without one, ESTALE where it is not ours. */
int stage_open(const struct layer *layer, size_t zone, unsigned number);
/* Whether an error says that what has the name is not ours. */
int stage_is_foreign(int error);
/* With everything in it; nothing where there is none. 0, or -1 with errno. */
int stage_remove(const struct layer *layer, size_t zone, unsigned number);
