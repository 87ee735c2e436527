/* Puts chosen changes of a layer into its zones, by a journal (tools/layer-journal.h). */
#pragma once

#include "tools/layer-modes.h"

/* The chosen changes: zone number and path, sorted. */
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

/* 0, or -1 with errno; then choice_end, and nothing is added any more. Paths are not copied. */
int choice_add(struct choice *choice, const struct chosen *chosen);
int choice_add_repository(struct choice *choice, const struct chosen *chosen);
void choice_end(struct choice *choice);

/* Reads `zone NUL path NUL`... from `fd`. 0, or -1 with errno. */
int choice_read(int fd, struct choice *choice);

int choice_has(const struct choice *choice, const struct chosen *wanted);

struct applied {
  size_t count;    /* of the choice; another command may have applied some of it meanwhile */
  size_t narrowed; /* modes (tools/layer-modes.h) */
};

enum apply_end { APPLY_DONE, APPLY_CONFLICT, APPLY_FAILED };
/* All or nothing. Prints each conflict that has come meanwhile as `conflict NUL path NUL`. With APPLY_FAILED errno and `failed`. */
enum apply_end layer_apply(const struct layer *layer, const struct choice *choice, struct applied *applied, char failed[PATH_MAX]);
