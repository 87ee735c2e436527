/* Memory for many small pieces that are given back together. */
#pragma once

#include <stddef.h>

struct arena {
  struct arena_block *last;
};

/* `directory`/`name`, or `name` alone where the directory is "". NULL with errno. */
char *arena_join(struct arena *arena, const char *directory, const char *name);
char *arena_copy(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);

/* Makes room for one more item of `size` bytes behind `count` of them. The items, or NULL with errno. */
void *grow(void *items, size_t count, size_t size);
/* Makes room for `size` bytes; `*room` is the present room. The bytes, or NULL with errno. */
char *grow_bytes(char *bytes, size_t size, size_t *room);
