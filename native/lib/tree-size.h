/*
 * The size of directory trees on disk, added up by a walk (lib/walk.h): the blocks of each entry, and for each name ENTRY_BYTES, or a million empty
 * files would be nothing. A file with several names counts once. Blocks that files share (reflinks) count for each of them.
 *
 * Every file system that the walk meets is kept open, so that its free space can be asked for between walks, which costs a microsecond.
 */
#pragma once

#include "lib/walk.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Inode and name of an empty file: in tmpfs, memory of the kernel; on ext4 and btrfs less. */
#define ENTRY_BYTES 1024

enum { TREE_DEVICES_MAX = 32 };

struct tree_device {
  dev_t device;
  int directory;        /* open on it */
  uint64_t free_bytes;  /* when it was met */
  uint64_t walked_free; /* when the last walk began */
};

struct tree_size {
  uint64_t bytes;
  const struct identity *apart; /* where other walks begin */
  size_t aparts;
  struct tree_device device[TREE_DEVICES_MAX]; /* these stay from walk to walk */
  size_t devices;
  /* Private from here on. */
  struct identity *linked; /* by a hash; ino 0 = free */
  size_t linked_count, linked_room;
};

/* Begins to add up anew; `apart` and the file systems stay. */
void tree_size_begin(struct tree_size *size);
/* Is it where another walk begins? */
int tree_size_is_apart(const struct tree_size *size, const struct stat *status);
/* 0, or -1 with errno. */
int tree_size_add(struct tree_size *size, const struct stat *status);
/* Keeps the file system of a descriptor. -1 with errno: E2BIG where there are too many. */
int tree_size_open(struct tree_size *size, int directory);
/* Free bytes of a file system, those of inodes included where that number means something. */
uint64_t tree_free_bytes(int directory);
