/*
 * Names that the policy hides in a zone: patterns for files whose content the command must not read.
 *
 * A pattern is compared with the last words of a path of the host, as many as it has: `.env` and `config/key` match at any depth, and in a
 * zone that begins below `config`, too. `*`, `?` and `[...]` match within one word; a slash at the end means directories, and links, which may
 * lead to one. Case does not count, since a directory may fold it.
 */
#pragma once

#include "lib/launch-file.h"

#include <stdint.h>

struct hide {
  const char *source; /* of the zone, on the host */
  const char **pattern;
  size_t patterns; /* 0 = nothing is hidden */
};

/* The patterns of a zone, which stand behind its entry and before the next zone; hide_free. 0, or -1 with errno. */
int hide_read(struct hide *hide, const struct launchfile *file, const struct entry *zone);
void hide_free(struct hide *hide);

/* Differs for other patterns or another source; 0 = nothing is hidden, which NULL means, too. */
uint64_t hide_sum(const struct hide *hide);

/* Is `name` hidden in the directory `at` of the zone, by a pattern of what it may be? */
int hide_matches(const struct hide *hide, const char *at, const char *name, int may_be_directory);

/* Is the source of the zone hidden, or does it lie in a directory that is? */
int hide_holds(const struct hide *hide, int is_directory);
