#include "tools/layer-paths.h"

#include "lib/arena.h"

#include <stdlib.h>
#include <string.h>

int by_zone_path(const void *a, const void *b) {
  const struct zone_path *first = a, *second = b;
  if (first->zone != second->zone) return first->zone < second->zone ? -1 : 1;
  return strcmp(first->path, second->path);
}

int zone_paths_add(struct zone_paths *paths, struct zone_path path) { return append(paths->item, paths->count, &path); }

void zone_paths_sort(struct zone_paths *paths) {
  if (paths->count) qsort(paths->item, paths->count, sizeof *paths->item, by_zone_path);
}

int zone_paths_have(const struct zone_paths *paths, struct zone_path path) {
  return paths->count && bsearch(&path, paths->item, paths->count, sizeof path, by_zone_path) != NULL;
}
