/* Chooses the changes of a list that paths mean, and says which of these are left out. */
#pragma once

#include "tools/layer-list.h"

struct wish {
  char *const *path; /* as a caller wrote them: relative to a zone, or absolute on the host; none = everything */
  size_t paths;
  int is_for_all;      /* what is protected is chosen, too */
  int is_not_a_person; /* nothing protected is chosen, named or not */
};

/*
 * Sets `is_chosen`, and `is_left` of what is protected or special. Of a protected tree only its root is left: one line is enough. 0, the
 * number of a path, from 1 on, that names no change; or -1 with errno.
 */
long choose_changes(struct list *list, const struct layer *layer, const struct wish *wish);
