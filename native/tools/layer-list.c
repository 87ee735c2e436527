#include "tools/layer-list.h"

#include <stdlib.h>
#include <string.h>

int list_add(struct list *list, const struct listed *item) {
  struct listed added = *item;
  added.length = strlen(item->path);
  added.path = arena_copy(&list->arena, item->path, added.length);
  added.other = arena_copy(&list->arena, item->other, strlen(item->other));
  return added.path && added.other ? append(list->item, list->count, &added) : -1;
}

/* ---- what lies in what ---- */

static int is_root(const struct listed *item) { return strcmp(item->path, ".") == 0; }

static int is_below(const struct listed *item, const struct listed *above) {
  return item->zone == above->zone && item->length > above->length && item->path[above->length] == '/' && memcmp(item->path, above->path, above->length) == 0;
}

static int is_in_repository(const struct listed *item, const struct listed *repository) {
  return (item->zone == repository->zone && is_root(repository)) || is_below(item, repository);
}

static int is_same_place(const struct listed *one, const struct listed *other) { return one->zone == other->zone && strcmp(one->path, other->path) == 0; }

/* A chain from the inside to the outside, which drops the directories that end before this change. */
static void relate_changes(struct list *list) {
  size_t above = NOWHERE;
  for (size_t i = 0; i < list->count; i++) {
    struct listed *item = &list->item[i];
    item->above = NOWHERE;
    if (!is_change(item) || is_root(item)) continue;
    while (above != NOWHERE && !is_below(item, &list->item[above])) above = list->item[above].above;
    item->above = above;
    above = i;
  }
}

/* The same; a repository comes right behind the change of its directory. */
static void relate_repositories(struct list *list) {
  size_t repository = NOWHERE;
  for (size_t i = 0; i < list->count; i++) {
    struct listed *item = &list->item[i];
    while (repository != NOWHERE && !is_in_repository(item, &list->item[repository])) repository = list->item[repository].repository;
    item->repository = repository;
    if (is_change(item)) continue;
    repository = i;
    if (i > 0 && is_change(&list->item[i - 1]) && is_same_place(item, &list->item[i - 1])) list->item[i - 1].repository = i;
  }
}

void list_relate(struct list *list) {
  relate_changes(list);
  relate_repositories(list);
}

/* ---- a layer ---- */

struct reading {
  struct list *list;
  const struct layer *layer;
  const struct mode_rule *rule;
};

static int on_change(void *data, const struct change *change) {
  const struct reading *reading = data;
  if (change->kind == KEPT) return 0;
  struct listed item = {.kind = change->kind, .zone = change->zone, .path = change->path, .other = change->other, .now = change->now.st_mode,
                        .before = change->origin.st_mode, .applied = mode_to_apply(reading->layer, change, reading->rule), .size = (long long)change->now.st_size,
                        .conflict = change->conflict, .nested = change->nested, .is_privileged = change->is_privileged};
  return list_add(reading->list, &item);
}

int list_read(struct list *list, const struct layer *layer, const struct mode_rule *rule, char failed[PATH_MAX]) {
  struct reading reading = {list, layer, rule};
  if (layer_changes(layer, on_change, &reading, failed) != 0) return -1;
  list_relate(list);
  return 0;
}
