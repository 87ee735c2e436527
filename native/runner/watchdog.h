/*
 * The memory limit where no memory controller can be had: look at the whole tree every few milliseconds, end it when it is over.
 *
 * Theory of operation: launch wakes at least every 25 ms while the command runs, and more often when there is something to do;
 * it calls watchdog_sample whenever watchdog_is_due says that the last look is old enough. A sample walks the tree (the
 * run's cgroup, or the descendants of the engine when there is none) and adds up resident and swapped pages, scratch file systems
 * and anonymous memory files. That sum counts pages shared between processes several times, so it can only be too high: when it
 * is below the limit, the tree is below the limit. Only when it is over, the exact share of each process is read (smaps_rollup,
 * a hundred times slower), and that decides.
 *
 * It fails closed. A process is looked at as soon as it is found, the youngest first, and the walk is repeated when one has ended
 * meanwhile, since its child may hold what it held. While something stays out of sight (a process that is not dumpable, processes
 * that come and go too fast), all by which the memory files of the host have grown counts as the run's. Two looks in a row of more
 * than 250 ms of processor time count as over. A process that ends between walk and share counts with what it had.
 *
 * What it cannot see, and the memory controller can: kernel memory (pipe buffers, page tables), detached System V segments
 * (bounded for root with engine unshare), memory files in flight over a socket, and what comes and goes between two samples.
 * docs/reference/limits.md says so.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most scratch file systems a run can count. */
enum { WATCHDOG_SCRATCH = 64, WATCHDOG_DEVICES = 32 };

enum { WATCHDOG_UNDER = 0, WATCHDOG_OVER = 1 };

/* A look younger than this is good enough. With the 25 ms of launch's timer the tree is looked at every 35 ms at the latest;
 * docs/reference/limits.md promises 50. */
enum { WATCHDOG_PAUSE_MS = 10 };

struct watchdog {
  long long used; /* bytes at the last sample */
  long long peak; /* highest used of all samples */
  long threads;   /* most threads of the tree in any sample, engine and init included, as pids.peak counts them; 0 before the first */
  int is_monitor; /* set where init is a child of the engine */
  /* Set for watchdog_sum_removed: the file systems whose removed files count, in the place of memory files. */
  dev_t device[WATCHDOG_DEVICES];
  size_t devices;
  int has_subvolumes; /* one of them is btrfs */
  int is_deep; /* files count that are only mapped or under way in a socket, too */
  int is_hidden; /* in the last sum: something that may hold files could not be looked at */
  /* Private from here on. */
  int group;
  pid_t engine;
  long long limit;
  int scratch[WATCHDOG_SCRATCH];
  size_t scratch_count;
  long long cpu_usec;
  uint64_t looked_ns;  /* CLOCK_MONOTONIC */
  dev_t memory_files;  /* 0 until the first sample */
  int swap;
  long long foreign;  /* bytes of memory files that are not the run's, at their least */
  int closed_scans, missed_scans, long_scans; /* in a row: with something out of sight, and too long */
  struct listed *listed;
  size_t listed_count;
  struct process *processes;
  size_t process_count;
  pid_t *visited;
  size_t visited_count;
  struct memory_file *files;
  size_t file_count;
};

/* Gets ready to watch `limit` bytes of the run: the processes of the cgroup directory `group` (lib/cgroup.h), or with group -1 the
 * engine and its descendants. -1 with errno: ENOSYS without a group where the kernel lists no children of a process. */
int watchdog_init(struct watchdog *watchdog, pid_t engine, int group, long long limit);

/* Counts what lies in a tmpfs too. The descriptor (O_PATH is enough) stays the caller's and must stay open; -1 with ENOSPC above
 * WATCHDOG_SCRATCH of them. */
int watchdog_add_scratch(struct watchdog *watchdog, int tmpfs);

/* 1 when it is time to look. A run that is over before the first look is due never pays for one. */
int watchdog_is_due(const struct watchdog *watchdog);

/* Looks once: WATCHDOG_UNDER, WATCHDOG_OVER, or -1 with errno when the tree could not be listed (treat it as a broken backend). */
int watchdog_sample(struct watchdog *watchdog);

/* Adds up removed files that the tree holds open, each once. -1 with errno as above. `is_deep` takes longer. A file that is only mapped has a size
 * for root; else it is hidden, as is each one under way in a socket. */
int watchdog_sum_removed(struct watchdog *watchdog, long long *bytes);

/* CPU time of the tree in microseconds, or -1. Exact with a group; else from the live processes and those their parents have
 * waited for, and never less than it was before. */
long long watchdog_cpu_usec(struct watchdog *watchdog);
