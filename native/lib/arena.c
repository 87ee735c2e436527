#include "lib/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64 << 10)
#define ALIGNMENT (sizeof(void *))

struct arena_block {
  struct arena_block *before;
  size_t used, room;
  char bytes[];
};

static struct arena_block *add_block(struct arena *arena, size_t least) {
  size_t room = least > BLOCK_BYTES ? least : BLOCK_BYTES;
  struct arena_block *block = malloc(sizeof *block + room);
  if (!block) return NULL;
  *block = (struct arena_block){.before = arena->last, .room = room};
  return arena->last = block;
}

/* `size` bytes, or NULL with errno. */
static void *arena_take(struct arena *arena, size_t size) {
  size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
  struct arena_block *block = arena->last;
  if ((!block || block->room - block->used < size) && !(block = add_block(arena, size))) return NULL;
  void *piece = block->bytes + block->used;
  block->used += size;
  return piece;
}

char *arena_copy(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_take(arena, length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

char *arena_join(struct arena *arena, const char *directory, const char *name) {
  size_t before = strlen(directory), length = strlen(name);
  if (before == 0) return arena_copy(arena, name, length);
  char *path = arena_take(arena, before + length + 2);
  if (!path) return NULL;
  memcpy(path, directory, before);
  path[before] = '/';
  memcpy(path + before + 1, name, length + 1);
  return path;
}

void arena_free(struct arena *arena) {
  for (struct arena_block *block = arena->last, *before; block; block = before) {
    before = block->before;
    free(block);
  }
  arena->last = NULL;
}

void *grow(void *items, size_t count, size_t size) {
  /* Powers of two from 16 on: there is room left at every other count. */
  if (count != 0 && (count < 16 || (count & (count - 1)) != 0)) return items;
  return realloc(items, (count < 16 ? 16 : count * 2) * size);
}

char *grow_bytes(char *bytes, size_t size, size_t *room) {
  if (size <= *room) return bytes;
  size_t wanted = 2 * *room + size + 4096;
  char *more = realloc(bytes, wanted);
  if (more) *room = wanted;
  return more;
}
