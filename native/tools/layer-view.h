/* Two directories that hold what a layer changes and nothing else, for programs that compare: `a` as the zone has it, `b` as the layer.
 * Where there are several zones, each is in a directory of its number. */
#pragma once

#include "tools/layer-changes.h"

/* Makes LAYER/view anew, or removes it where nothing is chosen. Permission bits are 0600, and 0100 where somebody may execute it. 0, or -1
 * with errno and `failed`. */
int layer_view(const struct layer *layer, const struct zone_paths *chosen, char failed[PATH_MAX]);
