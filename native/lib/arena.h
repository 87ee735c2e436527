/* Memory for many small pieces that are given back together. */
#pragma once

#include <stddef.h>
#include <string.h>

struct arena {
  struct arena_block *last;
};

/* `directory`/`name`, or `name` alone where the directory is "". NULL with errno. */
char *arena_join(struct arena *arena, const char *directory, const char *name);
char *arena_copy(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);

/* Makes room for one more item of `size` bytes behind `count` of them. The items, or NULL with errno. */
void *grow(void *items, size_t count, size_t size);
/* Puts a copy of `item` behind `*count` others; `items` is the address of the pointer to them. Returns 0, or -1 with errno. */
static inline int append_item(void *items, size_t *count, const void *item, size_t size) {
  void *all;
  memcpy(&all, items, sizeof all);
  char *more = grow(all, *count, size);
  if (!more) return -1;
  memcpy(items, &more, sizeof more);
  memcpy(more + (*count)++ * size, item, size);
  return 0;
}
/* The compiler compares the types. */
#define append(items, count, item) append_item(&(items), &(count), 1 ? (item) : (items), sizeof *(items))
/* Makes room for `size` bytes; `*room` is the present room. The bytes, or NULL with errno. */
char *grow_bytes(char *bytes, size_t size, size_t *room);
