/*
 * A protected change is one to a file that a program of the host runs or obeys, or that has more rights than its caller. In a copy-on-write
 * zone a command may make it, and apply leaves it alone unless it is named.
 *
 * Two rules decide. A name that exists on the host is judged by the guard, as in an rw zone (lib/guard.h). A name that only the layer has
 * is judged by the names in the record and by the rules for repositories (lib/repository.h).
 */
#pragma once

#include "tools/layer-list.h"

struct protected_zone {
  const char **name; /* below the zone */
  size_t names;
  const char *open; /* names in a git directory, and of systems, that are not protected; NULL = no repository is */
};

struct closed_place {
  size_t zone;
  const char *path; /* "." = all of it */
  size_t length;
};

struct protection {
  struct protected_zone *zone;
  size_t zones;
  struct closed_place *closed;
  size_t count;
  unsigned char *has_length; /* PATH_MAX + 1: a deep path has too many beginnings to look for each */
};

/* Reads that of a layer. Where the guard cannot be asked, all is closed. 0, or -1 with errno. */
int protection_read(struct protection *protection, const struct layer *layer);

/* By hand: a place of the host that is closed, and the end of those. 0, or -1 with errno. */
int protection_close(struct protection *protection, size_t zone, const char *path);
int protection_end(struct protection *protection);

/* Sets `is_protected`, by all of the changes. 0, or -1 with errno. */
int protect_list(const struct protection *protection, struct list *list);
