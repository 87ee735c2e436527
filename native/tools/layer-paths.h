/* Sets of paths in the zones of a layer. Paths are not copied. */
#pragma once

#include <stddef.h>

struct zone_path {
  size_t zone;
  const char *path; /* "." = its root */
};

struct zone_paths {
  struct zone_path *item;
  size_t count;
};

/* For qsort and bsearch, also of structures that begin with one. */
int by_zone_path(const void *a, const void *b);

/* 0, or -1 with errno. The set is sorted after the last one. */
int zone_paths_add(struct zone_paths *paths, struct zone_path path);
void zone_paths_sort(struct zone_paths *paths);
int zone_paths_have(const struct zone_paths *paths, struct zone_path path);
