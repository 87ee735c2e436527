#include "lib/tree-size.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

/* The number of free inodes means something in tmpfs only: xfs guesses it by its blocks, btrfs has none. */
uint64_t tree_free_bytes(int directory) {
  struct statfs status;
  if (fstatfs(directory, &status) < 0) return 0;
  return (uint64_t)status.f_bfree * (uint64_t)(status.f_frsize ? status.f_frsize : status.f_bsize) + (status.f_type == TMPFS_MAGIC ? (uint64_t)status.f_ffree * ENTRY_BYTES : 0);
}

void tree_size_begin(struct tree_size *size) {
  size->bytes = 0;
  if (size->linked) memset(size->linked, 0, size->linked_room * sizeof *size->linked);
  size->linked_count = 0;
  for (size_t i = 0; i < size->devices; i++) size->device[i].walked_free = tree_free_bytes(size->device[i].directory);
}

/* ---- files with several names ---- */

static struct identity *slot_of(struct identity *linked, size_t room, dev_t dev, ino_t ino) {
  size_t at = (size_t)((ino ^ (ino_t)dev << 7) * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);
  while (linked[at].ino && (linked[at].ino != ino || linked[at].dev != dev)) at = (at + 1) & (room - 1);
  return &linked[at];
}

static int make_room(struct tree_size *size) {
  if (size->linked_room && size->linked_count * 2 < size->linked_room) return 0;
  size_t room = size->linked_room ? size->linked_room * 2 : 1024;
  struct identity *more = calloc(room, sizeof *more);
  if (!more) return -1;
  for (size_t i = 0; i < size->linked_room; i++)
    if (size->linked[i].ino) *slot_of(more, room, size->linked[i].dev, size->linked[i].ino) = size->linked[i];
  free(size->linked);
  size->linked = more, size->linked_room = room;
  return 0;
}

/* 1 = it has been met by another name. */
static int was_met(struct tree_size *size, const struct stat *status) {
  if (make_room(size) < 0) return -1;
  struct identity *slot = slot_of(size->linked, size->linked_room, status->st_dev, status->st_ino);
  if (slot->ino) return 1;
  *slot = (struct identity){status->st_dev, status->st_ino};
  size->linked_count++;
  return 0;
}

/* ---- what is added ---- */

int tree_size_is_apart(const struct tree_size *size, const struct stat *status) {
  for (size_t i = 0; i < size->aparts; i++)
    if (size->apart[i].dev == status->st_dev && size->apart[i].ino == status->st_ino) return 1;
  return 0;
}

int tree_size_add(struct tree_size *size, const struct stat *status) {
  size->bytes += ENTRY_BYTES;
  int met = S_ISDIR(status->st_mode) || status->st_nlink < 2 ? 0 : was_met(size, status);
  if (met == 0) size->bytes += (uint64_t)status->st_blocks * 512;
  return met < 0 ? -1 : 0;
}

int tree_size_open(struct tree_size *size, int directory) {
  struct stat status;
  if (fstat(directory, &status) < 0) return -1;
  for (size_t i = 0; i < size->devices; i++)
    if (size->device[i].device == status.st_dev) return 0;
  if (size->devices == TREE_DEVICES_MAX) return errno = E2BIG, -1;
  int kept = fcntl(directory, F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return -1;
  uint64_t free_bytes = tree_free_bytes(kept);
  size->device[size->devices++] = (struct tree_device){status.st_dev, kept, free_bytes, free_bytes};
  return 0;
}
