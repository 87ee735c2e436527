/*
 * Where an apply prepares what goes into a zone. A rename does not leave a mount, so for a zone on the mount of its layer that is the layer
 * itself, and for another one a directory on the mount of the zone which no sandbox reaches:
 *
 *   HOLDER/.stage-ID-K-N   in another directory for layers: no zone shows those writable (decidingPaths in src/run/caller.ts)
 *   ZONE/.llm-do-ID-K      root alone, in the root of the zone: it belongs to an id that no sandbox has, and is closed to all others. A
 *                          command may rename it, but not enter it. The time of the zone's root is kept.
 */
#pragma once

#include "tools/layer-changes.h"

#define STAGE_IN_LAYER "layer"
#define STAGE_IN_ZONE "zone"
#define STAGE_NOWHERE "nowhere"

/* The K-th apply's, for one zone. */
struct stage {
  const struct layer *layer;
  size_t zone;
  unsigned number;
  const char *place; /* one of the words, or the absolute path of a directory for layers */
  int fd;            /* -1 = not open */
};

/* The place for the stages of a zone: STAGE_NOWHERE where none is out of reach of sandboxes. NULL with errno. */
const char *stage_place(const struct layer *layer, size_t zone);
/* Whether a place that was chosen then is still on the mount of the zone. 1, 0, or -1 with errno. */
int stage_is_reachable(const struct stage *stage);
/* Not in the layer, but on another mount. */
int stage_is_apart(const struct stage *stage);

/* Of places apart. Opens it, or makes it where it is missing. A descriptor, or -1 with errno: ESTALE where what has its name is not ours. */
int stage_reach(const struct stage *stage);
/* Whether an error says that what has the name is not ours. */
int stage_is_foreign(int error);
/* With everything in it; nothing where there is none. 0, or -1 with errno. */
int stage_remove(const struct stage *stage);
/* Stages of an apply that was cut off before it said where they are. An entry with their name that is not ours stays. 0, or -1 with errno. */
int stage_remove_anywhere(const struct layer *layer, size_t zone, unsigned number);
