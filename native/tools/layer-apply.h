/* Puts chosen changes of a layer into its zones, by a journal (tools/layer-journal.h). */
#pragma once

#include "tools/layer-modes.h"

/* Which changes: zone number and path, sorted. */
struct chosen {
  size_t zone;
  const char *path;
  int force; /* also over what the host has changed */
};

struct choice {
  struct chosen *item;
  size_t count;
  struct chosen *repository; /* directories that the caller knows to be repositories, or to become some, sorted */
  size_t repositories;
  struct mode_rule modes;
};

/* Reads `zone NUL y|n NUL path NUL`... from `fd`, with `g` for a repository. 0, or -1 with errno. */
int choice_read(int fd, struct choice *choice);

int choice_has(const struct choice *choice, const struct chosen *wanted);

enum apply_end { APPLY_DONE, APPLY_CONFLICT, APPLY_FAILED };
/* All or nothing. Prints how many of the chosen changes there were and how many of their modes were narrowed (tools/layer-modes.h), ended
 * by NUL each, or each conflict as `zone NUL path NUL`. With APPLY_FAILED errno and `failed`. */
enum apply_end layer_apply(const struct layer *layer, const struct choice *choice, char failed[PATH_MAX]);
