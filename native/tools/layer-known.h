/*
 * Changes of the host that were our own: renaming a file moves its ctime, and that of its directory. Without these an undo would turn
 * everything that it gives back into a conflict. LAYER/known is appended to after each apply and undo: zone, path, ctime.
 */
#pragma once

#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

struct known {
  struct known_item *item; /* sorted */
  size_t count;
  size_t length; /* of the file, as far as it can be read */
};

/* 0, or -1 with errno. A layer without the file has none. */
int known_read(int layer, struct known *known);
/* Whether this ctime of the path is our own doing. */
int known_has(const struct known *known, size_t zone, const char *path, const struct timespec *time);

/* Notes what there is now at the path; nothing where there is nothing. 0, or -1 with errno. */
struct known_out {
  char *bytes;
  size_t size;
  void *stream;
};
int known_begin(struct known_out *out);
void known_put(struct known_out *out, size_t zone, const char *path, const struct stat *status);
/* Appends to the file, and frees. */
int known_end(struct known_out *out, int layer);
