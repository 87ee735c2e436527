/*
 * The run's own cgroup (version 2): make it, limit it, read it, empty it, remove it.
 *
 * Theory of operation: launch opens the parent once, makes `llm-do-<run id>` below it, writes the limits, and clones the
 * stager straight into it (CLONE_INTO_CGROUP), so the first instruction of the run is already limited. At the end the group
 * is read and removed; should anything still live in it, that is killed and waited for first. All names below a group are
 * opened relative to its descriptor, so nothing that happens to the path in between can send a write elsewhere.
 *
 * Every function returns -1 with errno set when it fails. Nothing here prints and nothing exits: launch knows how to report.
 */
#pragma once

#include <sys/types.h>

/* Names of run groups start with this; cgroup_create and cgroup_remove refuse any other with EINVAL, because a stale or
 * foreign record must never make the janitor remove another user's group. */
#define CGROUP_PREFIX "llm-do-"

/* Returned by cgroup_set for a file that does not exist: the kernel is too old for it or the controller is not enabled here. */
#define CGROUP_ABSENT 1

/* Counters of a group's controllers; -1 for a missing controller, file or line. */
struct cgroup_usage {
  long long memory_peak;    /* bytes, memory.peak (since 5.19), else 0 when memory is accounted, -1 when it is not */
  long long pids_peak;      /* pids.peak (since 6.1) */
  long long throttled_usec; /* cpu.stat throttled_usec */
  long long oom;            /* memory.events oom: times the limit of this group itself could not be met */
  long long oom_kill;       /* memory.events oom_kill: processes killed here by any OOM killer, the host's own included */
  long long pids_max;       /* pids.events max: forks refused */
  long long read_bytes;     /* io.stat rbytes, of all disks: what went through the page cache alone is in neither */
  long long write_bytes;    /* io.stat wbytes */
};

/* Opens an existing cgroup directory by absolute path; ENOTSUP when it is a directory of something else than cgroup v2. */
int cgroup_open(const char *parent);

/* Makes the group `name` below parent and returns a descriptor for CLONE_INTO_CGROUP and the functions below; EEXIST when it is there. */
int cgroup_create(int parent, const char *name);

/* Writes value to one file of the group; 0, CGROUP_ABSENT, or -1. The files of the io controller take a value for one disk: one that
 * begins with "* " is written once for each disk of the host, partitions and empty drives aside; ENODEV when there is none. */
int cgroup_set(int group, const char *file, const char *value);

/* Sends SIGKILL to every process of the group and below, frozen and stopped ones too. Does not wait for them to be gone. */
int cgroup_kill(int group);

/* Does the work of cgroup_kill on kernels without cgroup.kill (before 5.14): freeze, kill each process, thaw, until nothing is left. */
int cgroup_kill_each(int group);

/* Waits until nothing lives in the group and below: 0, or -1 with ETIMEDOUT. timeout_ms 0 only looks. */
int cgroup_wait_empty(int group, int timeout_ms);

/* Fills in usage. Controllers that are not there cost a look each, not a read: most of a short run's limits would go there. */
void cgroup_read_usage(int group, struct cgroup_usage *usage);

/* Threads that live directly in the group, each process being at least one; -1 when they cannot be counted. */
long cgroup_count_threads(int group);

/* CPU time used so far in microseconds, or -1. One read: cheap enough for every tick of a timer. */
long long cgroup_read_cpu_usec(int group);

/* Kills what is left in the group, waits for its end, and removes the group with all below it. An empty group, as most are at their
 * end, costs one system call. */
int cgroup_end(int parent, const char *name, int group);

/* Removes the group and the empty groups below it; a group that is already gone is success. EBUSY when it stays populated. */
int cgroup_remove(int parent, const char *name);

/* Calls visit for each process of the group and below; stops at the first call that does not return 0 and returns that. */
int cgroup_each_process(int group, int (*visit)(pid_t pid, void *data), void *data);
