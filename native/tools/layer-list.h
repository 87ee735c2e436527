/* The changes of a layer (tools/layer-changes.h) as a list, for those who judge one change by others: a directory comes before what is in it,
 * and nothing else between. */
#pragma once

#include "lib/arena.h"
#include "tools/layer-modes.h"

#include <string.h>

#define NOWHERE SIZE_MAX

struct listed {
  enum change_kind kind; /* GIT and NEW_GIT are no changes; KEPT is in no list */
  size_t zone;
  const char *path; /* "." = the root of the zone */
  const char *other;
  mode_t now;     /* in the layer; of DELETED, on the host */
  mode_t before;  /* on the host, 0 = it never had it */
  mode_t applied; /* permission bits */
  long long size;
  int conflict, nested, is_privileged;

  size_t length;     /* of the path */
  size_t above;      /* the nearest change that it lies in; the root of a zone is none. NOWHERE = there is none */
  size_t repository; /* the nearest GIT or NEW_GIT that it is, or lies in */

  int is_protected; /* by protect_list (tools/layer-protected.h) */
  int is_chosen, is_left; /* by choose_changes (tools/layer-choice.h) */
};

struct list {
  struct listed *item;
  size_t count;
  struct arena arena;
};

/* Reads a layer. 0, or -1 with errno and `failed`. */
int list_read(struct list *list, const struct layer *layer, const struct mode_rule *rule, char failed[PATH_MAX]);

/* Appends a copy, and says what lies in what when the list has all. */
int list_add(struct list *list, const struct listed *item);
void list_relate(struct list *list);

static inline int is_change(const struct listed *item) { return item->kind != GIT && item->kind != NEW_GIT; }
/* Where nothing was, or something else: what lies below came with it. */
static inline int is_making(const struct listed *item) { return item->kind == ADDED || item->kind == RENAMED || item->kind == TYPE; }
/* A device, FIFO or socket, which is never applied. */
static inline int is_special(const struct listed *item) { return item->kind != DELETED && !S_ISREG(item->now) && !S_ISDIR(item->now) && !S_ISLNK(item->now); }
