/*
 * node: which program of that name runs the package.
 *
 * The one that built or installed the package is on record in ROOT/dist/node-path. Where that is gone, PATH is searched: only
 * absolute entries, and none that a command in a sandbox may have been able to write to (the caller's directory, what the words
 * name). Either way the program belongs to root or the caller, and no other user can write to it.
 */
#pragma once

#include <stddef.h>

struct node_search {
  const char *root;   /* directory of the package */
  const char *path;   /* the caller's PATH; NULL for none */
  char *const *words; /* the caller's, ended by NULL */
};

/* 0, or -1 with what was looked at and why it was passed over, one line, in `why`. */
int node_find(const struct node_search *search, char *node, size_t room, char *why, size_t why_room);
