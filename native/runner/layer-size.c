#include "runner/layer-size.h"

#include "lib/clock.h"
#include "lib/files.h"
#include "lib/layer.h"
#include "lib/tree-size.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#define MS 1000000ull
#define LOOK_NS (50 * MS)
#define LOOK_LEAST_NS (2 * MS)
#define FILL_BYTES_PER_NS 4 /* memory takes no more of a few processors, and the page cache of a disk is memory */
#define WALK_NS (1000 * MS)
#define REST 4 /* times as long as the last walk took there is none: a million files take a second, in which nothing else is looked at */
#define DEEPEST 256 /* levels: each takes stack, a descriptor and a buffer of launch, and a command may make 100,000 */

static int is_in_memory(int layer) {
  struct statfs status;
  return fstatfs(layer, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

/* Before as much could be written as is left: a command that stays far below its limit is looked at every 50 ms. */
uint64_t size_next_look(uint64_t limit, uint64_t estimate, uint64_t at_ns) {
  uint64_t rest = limit > estimate ? (limit - estimate) / FILL_BYTES_PER_NS : 0;
  return at_ns + (rest < LOOK_LEAST_NS ? LOOK_LEAST_NS : rest < LOOK_NS ? rest : LOOK_NS);
}

void layer_size_begin(struct layer_size *size, int layer, uint64_t limit, uint64_t now_ns) {
  *size = (struct layer_size){.limit = limit, .layer = layer, .is_in_memory = is_in_memory(layer)};
  if (!limit) return;
  size->free_bytes = size->used_free = tree_free_bytes(size->layer);
  size->due_ns = size_next_look(limit, 0, now_ns);
  size->walk_ns = now_ns + WALK_NS;
}

uint64_t layer_size_due(const struct layer_size *size) { return size->limit ? size->due_ns : 0; }

/* Bytes in and below a directory, which is closed; -1 when something could not be read, or is too deep. */
static int add_tree(int directory, int levels, uint64_t *bytes) {
  DIR *entries = levels ? fdopendir(directory) : NULL;
  int done = entries ? 0 : -1;
  struct stat status;
  if (!entries) return close(directory), -1;
  for (const char *name; (name = entries_next(entries));) {
    if (fstatat(dirfd(entries), name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
      if (errno != ENOENT) done = -1; /* a command may have closed the directory to us, but what has gone is gone */
      continue;
    }
    *bytes += (uint64_t)status.st_blocks * 512 + ENTRY_BYTES;
    if (!S_ISDIR(status.st_mode)) continue;
    int below = openat(dirfd(entries), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0 ? errno != ENOENT && errno != ENOTDIR : add_tree(below, levels - 1, bytes) < 0) done = -1;
  }
  return entries_close(entries, done);
}

/* Each zone of the layer; its work directory has no name that a command could give a file for long. */
static int add_zones(int layer, uint64_t *bytes) {
  for (size_t number = 0;; number++) {
    int upper = layer_open_upper(layer, number);
    if (upper < 0) return errno == ENOENT ? 0 : -1;
    if (add_tree(upper, DEEPEST, bytes) < 0) return -1;
  }
}

static uint64_t lost(uint64_t before, uint64_t now) { return before > now ? before - now : 0; }

int layer_size_is_over(struct layer_size *size, uint64_t at_ns, int is_last) {
  if (!size->limit) return 0;
  uint64_t now_free = tree_free_bytes(size->layer), all = lost(size->free_bytes, now_free), estimate = size->used + lost(size->used_free, now_free);
  size->due_ns = size_next_look(size->limit, estimate, at_ns);
  if (size->is_in_memory && all > size->limit) return 1; /* no walk, and no rest from walks, in which memory could be filled */
  if (!is_last && (at_ns < size->rest_ns || (estimate <= size->limit && at_ns < size->walk_ns))) return 0;
  uint64_t begun = now_ns();
  uint64_t bytes = 0;
  int is_unseen = add_zones(size->layer, &bytes) < 0 || size->is_in_memory;
  if (is_unseen && bytes < all) bytes = all;
  size->used = bytes;
  size->used_free = now_free;
  uint64_t ended = now_ns();
  size->rest_ns = ended + REST * (ended - begun);
  size->walk_ns = ended + WALK_NS;
  return bytes > size->limit;
}
