/* Puts chosen changes of a layer into its zones, by a journal (tools/layer-journal.h). */
#pragma once

#include "tools/layer-modes.h"
#include "tools/layer-paths.h"

/* Both sets are sorted. */
struct choice {
  struct zone_paths changes;
  struct zone_paths repositories; /* directories that the caller knows to be repositories, or to become some */
  int is_forced;                  /* also over what the host has changed */
  struct mode_rule modes;
};

struct applied {
  size_t count;    /* of the choice; another command may have applied some of it meanwhile */
  size_t narrowed; /* modes (tools/layer-modes.h) */
};

enum apply_end { APPLY_DONE, APPLY_CONFLICT, APPLY_FAILED };
/* All or nothing. Prints each conflict that has come meanwhile as `conflict NUL path NUL`. With APPLY_FAILED errno and `failed`. */
enum apply_end layer_apply(const struct layer *layer, const struct choice *choice, struct applied *applied, char failed[PATH_MAX]);
