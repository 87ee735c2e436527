/*
 * The limit of what a command writes to writable zones directly: by how much they may grow together since just before it starts.
 *
 * Theory of operation. What a zone takes is added up by a walk (lib/tree-size.h), once before the command and again when it may be too much:
 * removed files that the run's processes still hold open are added (runner/watchdog.h). A walk of a large project takes longer than anything else that
 * launch does, so it is made in pieces, and the free space of the file systems is asked first: it falls by all that is written. It also falls by what
 * other programs write, and what they remove hides as much. So there is a walk
 * - at once when the file systems have lost as much as is left, but not before a pause of four times the last walk;
 * - after a second, and a pause of four times the last walk, while they have lost more than the limit since the start;
 * - else after a second, and a pause of 49 times the last walk: 2 % of a processor.
 * After the command the last walk decides, when nothing moves any more.
 *
 * Launch never guesses. A path too long for the kernel, a directory that a command closes again and again, or too many file
 * systems end the run. A removed file that a plain user's process only maps, one under way in a socket, and descriptors of a process that cannot be
 * looked at have no size; while there are such files, all that the file systems have lost since the start counts.
 *
 * Why the kernel does not hold it: RLIMIT_FSIZE bounds the offset in each file, so it would end a program that appends to a large file, and bounds
 * nothing for many files. A project quota (quotactl(2)) would be exact, but needs a file system that is mounted for it, root, and a mark on
 * every file of the project that stays there.
 */
#pragma once

#include "lib/launch-file.h"
#include "lib/tree-size.h"
#include "runner/watchdog.h"

#include <limits.h>
#include <stdint.h>

struct zone_size {
  uint64_t limit; /* bytes */
  int has_begun;  /* 0 = without a limit */
  struct measured_zone *zone;
  struct identity *root; /* of each zone */
  size_t zones;
  int64_t before, used; /* what they took before the command; by how much they had grown at the last walk */
  uint64_t due_ns, walk_ns, rest_ns; /* the next look, the next walk in any case, and none before */
  uint64_t spent_ns; /* by the walk that has begun */
  long long removed; /* bytes in removed files when it began */
  int doubts; /* walks in a row after which only these were too much */
  size_t walked; /* the zone that it is in */
  int is_walking;
  struct walk walk;
  struct tree_size sum;
  struct watchdog processes;
  char failed[PATH_MAX]; /* where a look has given up */
};

/* Adds up the writable zones, before the command. 0, or -1 with errno and `failed`. */
int zone_size_begin(struct zone_size *size, const struct launchfile *file);
/* The command runs in these processes, as for watchdog_init. -1 with errno. */
int zone_size_watch(struct zone_size *size, pid_t engine, int group, int is_monitor, uint64_t now_ns);
/* When the next look is due; 0 = never. */
uint64_t zone_size_due(const struct zone_size *size);
/* 1 when it is over, 0, or -1 with errno and `failed`. */
int zone_size_is_over(struct zone_size *size, uint64_t now_ns);
/* The same when nothing of the command is left. */
int zone_size_ends_over(struct zone_size *size);
