#include "tools/layer-modes.h"

#define PERMISSIONS 0777
#define OWNER 0700
#define READ_BY_OTHERS 0044

/* Bits by which others may execute a file because they may read it. */
static mode_t executable_by_others(mode_t was) { return (was & READ_BY_OTHERS) >> 2; }

mode_t mode_to_apply(const struct change *change, const struct mode_rule *rule) {
  mode_t now = change->now.st_mode & PERMISSIONS, was = change->origin.st_mode & PERMISSIONS;
  int had = (change->origin.st_mode & S_IFMT) == (change->now.st_mode & S_IFMT);
  if (change->kind == KEPT) return now;
  if (change->is_privileged && had) return now & was;
  if (change->is_privileged) return now & ~rule->umask;
  if (rule->is_wide) return now;
  if (!had) return now & ~rule->umask;
  return now & (OWNER | was | (S_ISREG(change->now.st_mode) ? executable_by_others(was) : 0));
}
