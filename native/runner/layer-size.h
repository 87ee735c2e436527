/*
 * The limit of what copy-on-write zones may take. No file system counts for a directory what is below it, so the upper directories are
 * walked: at once when the file system has lost as much as would be too much, else from time to time. The less is left, the sooner the
 * file system is asked again. What cannot be read counts as all that the file system has lost since the start. Files that were removed and are
 * still open are in no directory: on a disk they are not counted, in memory all that the file system has lost since the start counts, bytes and
 * inodes. Each name counts as 1 KiB, or a million empty files would be no change.
 *
 * The kernel could bound a layer in memory by a tmpfs for each run (`size=`, `nr_inodes=`). A user can make one in the namespace of the run, use it as
 * the upper directory, and read it by its descriptor when that namespace has ended (tried on Linux 6.18). But a layer must stay when its run
 * has ended. For a user, move_mount(2) and open_tree(2) of that mount fail with EPERM; rename(2), link(2) and copy_file_range(2) to a file system that
 * stays fail with EXDEV. It would have to be copied by read(2) and write(2): about a second for 1 GiB, and lost if launch is killed before.
 */
#pragma once

#include <stdint.h>

struct layer_size {
  uint64_t limit;      /* bytes; 0 = none */
  int layer;           /* its directory */
  int is_in_memory;
  uint64_t free_bytes; /* of the file system, at the start */
  uint64_t used, used_free; /* at the last walk */
  uint64_t due_ns, walk_ns; /* the next look, the next walk in any case */
  uint64_t rest_ns; /* and none before */
};

void layer_size_begin(struct layer_size *size, int layer, uint64_t limit, uint64_t now_ns);
/* When the next look is due; 0 = never. */
uint64_t layer_size_due(const struct layer_size *size);
/* 1 when it is over; `is_last` walks in any case. */
int layer_size_is_over(struct layer_size *size, uint64_t now_ns, int is_last);
/* When to look again: before as much could be written as is left, and no later than after 50 ms. */
uint64_t size_next_look(uint64_t limit, uint64_t estimate, uint64_t at_ns);
