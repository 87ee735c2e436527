#include "runner/zone-size.h"

#include "lib/arena.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/text.h"
#include "runner/layer-size.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MS 1000000ull
#define PIECE_NS (5 * MS)
#define WALK_NS (1000 * MS)
#define REST 4
#define QUIET_REST 49 /* a walk takes one part in fifty of a processor's time */

struct measured_zone {
  const char *source;
  int fd;      /* O_PATH */
  int is_file; /* and nothing else is in it */
};

static int fail_at(struct zone_size *size, const char *zone, const char *path) {
  copy_text(size->failed, sizeof size->failed, zone);
  if (path[0]) copy_text(size->failed + strlen(size->failed), sizeof size->failed - strlen(size->failed), "/");
  copy_text(size->failed + strlen(size->failed), sizeof size->failed - strlen(size->failed), path);
  return -1;
}

/* ---- zones ---- */

static int is_known(const struct zone_size *size, const struct stat *status) {
  for (size_t i = 0; i < size->zones; i++)
    if (size->root[i].dev == status->st_dev && size->root[i].ino == status->st_ino) return 1;
  return 0;
}

/* The same directory at two targets is one zone. */
static int add_zone(struct zone_size *size, const struct entry *entry) {
  uint64_t device, inode;
  struct stat status;
  errno = EINVAL;
  if (parse_number(entry->word[3], UINT64_MAX, &device) < 0 || parse_number(entry->word[4], UINT64_MAX, &inode) < 0) return -1;
  int fd = sys_openat2(AT_FDCWD, entry->word[0], O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (fd < 0 || fstat(fd, &status) < 0) return -1;
  if (status.st_dev != device || status.st_ino != inode) return errno = ESTALE, -1;
  if (is_known(size, &status)) return close(fd), 0;
  size_t roots = size->zones;
  if (append(size->root, roots, &((struct identity){status.st_dev, status.st_ino})) < 0) return -1;
  return append(size->zone, size->zones, &((struct measured_zone){entry->word[0], fd, !S_ISDIR(status.st_mode)}));
}

/* ---- a walk ---- */

static void begin_walk(struct zone_size *size) {
  tree_size_begin(&size->sum);
  size->walked = 0, size->is_walking = 1, size->spent_ns = 0;
  size->walk = (struct walk){.zone = -1};
}

/* A zone that is a file may have lost its name. */
static int add_file(struct zone_size *size, const struct measured_zone *zone) {
  struct stat status;
  return fstat(zone->fd, &status) < 0 || tree_size_open(&size->sum, zone->fd) < 0 ? -1 : tree_size_add(&size->sum, &status);
}

static int is_too_deep(const struct walk *walk) {
  for (size_t i = 0; i < walk->count; i++)
    if (walk->find[i].kind == FIND_TOO_DEEP) return 1;
  return 0;
}

/* One zone, or a piece of it. 1 = there is more of it, -1 with errno and `failed`. */
static int walk_zone_some(struct zone_size *size, uint64_t until_ns) {
  const struct measured_zone *zone = &size->zone[size->walked];
  if (zone->is_file) return add_file(size, zone) < 0 ? fail_at(size, zone->source, "") : 0;
  if (size->walk.zone < 0) size->walk = (struct walk){.zone = zone->fd, .size = &size->sum, .entries_max = size->has_begun ? 0 : WALK_ENTRIES_MAX};
  int done = walk_some(&size->walk, until_ns);
  if (done == 0 && is_too_deep(&size->walk)) errno = ENAMETOOLONG, done = -1;
  if (done < 0) fail_at(size, zone->source, errno == E2BIG ? "" : size->walk.at);
  if (done <= 0) walk_free(&size->walk);
  return done;
}

/* 1 = there is more, -1 with errno and `failed`. */
static int walk_on(struct zone_size *size, uint64_t until_ns) {
  for (; size->walked < size->zones; size->walked++) {
    int done = walk_zone_some(size, until_ns);
    if (done != 0) return done;
  }
  size->is_walking = 0;
  return 0;
}

/* ---- what has become of the file systems ---- */

static uint64_t lost(uint64_t before, uint64_t now) { return before > now ? before - now : 0; }

struct losses {
  uint64_t all, walked; /* since the start, and since the last walk began */
};

static struct losses losses_of(const struct zone_size *size) {
  struct losses losses = {0, 0};
  for (size_t i = 0; i < size->sum.devices; i++) {
    const struct tree_device *device = &size->sum.device[i];
    uint64_t now = tree_free_bytes(device->directory);
    losses.all += lost(device->free_bytes, now), losses.walked += lost(device->walked_free, now);
  }
  return losses;
}

static uint64_t estimate(const struct zone_size *size, const struct losses *losses) { return (size->used > 0 ? (uint64_t)size->used : 0) + losses->walked; }

static int has_subvolumes(int directory) {
  struct statfs status;
  return fstatfs(directory, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC;
}

static int is_too_much(const struct zone_size *size, int64_t bytes) { return bytes > 0 && (uint64_t)bytes > size->limit; }

static void count_devices(struct zone_size *size) {
  struct watchdog *processes = &size->processes;
  processes->devices = 0, processes->has_subvolumes = 0;
  for (size_t i = 0; i < size->sum.devices; i++) {
    processes->device[processes->devices++] = size->sum.device[i].device;
    processes->has_subvolumes |= has_subvolumes(size->sum.device[i].directory);
  }
}

/* Before a walk: one that is removed later is met by the walk, or was, and one that gets a name is met again. */
static int add_removed(struct zone_size *size) {
  count_devices(size);
  size->processes.is_deep = losses_of(size).all > size->limit;
  return watchdog_sum_removed(&size->processes, &size->removed) < 0 ? fail_at(size, "removed files", "") : 0;
}

/* 1 when a walk has found too much. A file that has got a name meanwhile counts twice, so what removed files add must be too much twice in a row. */
static int judge(struct zone_size *size) {
  int is_hidden = size->processes.is_hidden && losses_of(size).all > size->limit;
  size->used = (int64_t)size->sum.bytes - size->before;
  if (is_too_much(size, size->used) || is_hidden) return 1;
  size->used += size->removed;
  size->doubts = is_too_much(size, size->used) ? size->doubts + 1 : 0;
  return size->doubts > 1;
}

/* ---- a run ---- */

int zone_size_begin(struct zone_size *size, const struct launchfile *file) {
  struct entry entry;
  if (!launchfile_find(file, V_RW_SIZE, &entry)) return 0;
  if (parse_number(entry.word[0], UINT64_MAX, &size->limit) < 0) return errno = EINVAL, fail_at(size, entry.word[0], "");
  for (size_t position = 0; launchfile_next_of(file, V_ZONE, &position, &entry);)
    if (strcmp(entry.word[2], "rw") == 0 && add_zone(size, &entry) < 0) return fail_at(size, entry.word[0], "");
  size->sum.apart = size->root, size->sum.aparts = size->zones;
  begin_walk(size);
  if (walk_on(size, 0) < 0) return -1;
  size->before = (int64_t)size->sum.bytes;
  return size->has_begun = 1, 0;
}

int zone_size_watch(struct zone_size *size, pid_t engine, int group, int is_monitor, uint64_t at_ns) {
  if (!size->has_begun) return 0;
  if (watchdog_init(&size->processes, engine, group, 0) < 0) return fail_at(size, "removed files", "");
  size->processes.is_monitor = is_monitor;
  size->due_ns = size_next_look(size->limit, 0, at_ns);
  size->walk_ns = at_ns + WALK_NS;
  return 0;
}

uint64_t zone_size_due(const struct zone_size *size) { return size->due_ns; }

static void end_walk(struct zone_size *size) {
  struct losses losses = losses_of(size);
  uint64_t ended = now_ns(), pause = size->spent_ns * (losses.all > size->limit || size->doubts ? REST : QUIET_REST);
  size->rest_ns = ended + REST * size->spent_ns;
  size->walk_ns = ended + (pause > WALK_NS ? pause : WALK_NS);
  size->due_ns = size_next_look(size->limit, estimate(size, &losses), ended);
}

static int walk_a_piece(struct zone_size *size, uint64_t at_ns) {
  int done = walk_on(size, at_ns + PIECE_NS);
  int is_over = done == 0 ? judge(size) : done < 0 ? -1 : 0;
  size->spent_ns += now_ns() - at_ns;
  if (done > 0) size->due_ns = at_ns; /* other sources are looked at in between */
  else end_walk(size);
  return is_over;
}

int zone_size_is_over(struct zone_size *size, uint64_t at_ns) {
  if (!size->is_walking) {
    struct losses losses = losses_of(size);
    uint64_t now = estimate(size, &losses);
    size->due_ns = size_next_look(size->limit, now, at_ns);
    if (at_ns < size->rest_ns || (now <= size->limit && at_ns < size->walk_ns)) return 0;
    if (add_removed(size) < 0) return -1;
    begin_walk(size);
  }
  return walk_a_piece(size, at_ns);
}

int zone_size_ends_over(struct zone_size *size) {
  if (!size->has_begun) return 0;
  if (size->is_walking) walk_free(&size->walk);
  begin_walk(size);
  if (walk_on(size, 0) < 0) return -1;
  return is_too_much(size, (int64_t)size->sum.bytes - size->before);
}
