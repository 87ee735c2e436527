/*
 * The run's own cgroup (version 2): make it, limit it, read it, empty it, remove it.
 *
 * Theory of operation: launch opens the parent once, makes `llm-do-<run id>` below it, writes the limits, and clones the
 * stager straight into it (CLONE_INTO_CGROUP), so the first instruction of the run is already limited. At the end the whole
 * group is killed, waited for until it is empty, read, and removed. All names below a group are opened relative to its
 * descriptor, so nothing that happens to the path in between can send a write elsewhere.
 *
 * Every function returns -1 with errno set when it fails. Nothing here prints and nothing exits: launch knows how to report.
 */
#ifndef LLM_DO_CGROUP_H
#define LLM_DO_CGROUP_H

#include <sys/types.h>

/* Names of run groups start with this; cgroup_create and cgroup_remove refuse any other with EINVAL, because a stale or
 * foreign record must never make the janitor remove somebody else's group. */
#define CGROUP_PREFIX "llm-do-"

/* Returned by cgroup_set for a file that does not exist: the kernel is too old for it or the controller is not enabled here. */
#define CGROUP_ABSENT 1

/* Counters of a group; -1 where the kernel has no such file or line. */
struct cgroup_usage {
  long long memory_peak;    /* bytes, memory.peak (since 5.19), else 0 when memory is accounted, -1 when it is not */
  long long pids_peak;      /* pids.peak (since 6.1) */
  long long cpu_usec;       /* cpu.stat usage_usec, there without any controller */
  long long throttled_usec; /* cpu.stat throttled_usec */
  long long throttled;      /* cpu.stat nr_throttled: periods in which the group had to wait */
  long long oom;            /* memory.events oom: times the limit of this group itself could not be met */
  long long oom_kill;       /* memory.events oom_kill: processes killed here by any OOM killer, the host's own included */
  long long pids_max;       /* pids.events max: forks refused */
};

/* Opens an existing cgroup directory by absolute path; ENOTSUP when it is a directory of something else than cgroup v2. */
int cgroup_open(const char *parent);

/* Makes the group `name` below parent and returns a descriptor for CLONE_INTO_CGROUP and the functions below; EEXIST when it is there. */
int cgroup_create(int parent, const char *name);

/* Writes value to one file of the group; 0, CGROUP_ABSENT, or -1. */
int cgroup_set(int group, const char *file, const char *value);

/* Sends SIGKILL to every process of the group and below, frozen and stopped ones too. Does not wait for them to be gone. */
int cgroup_kill(int group);

/* What cgroup_kill does on kernels without cgroup.kill (before 5.14): freeze, kill each process, thaw, until nothing is left. */
int cgroup_kill_each(int group);

/* Waits until nothing lives in the group and below: 0, or -1 with ETIMEDOUT. timeout_ms 0 only looks. */
int cgroup_wait_empty(int group, int timeout_ms);

/* Fills in usage; -1 only when cpu.stat, which every cgroup v2 has, cannot be read. */
int cgroup_read_usage(int group, struct cgroup_usage *usage);

/* CPU time used so far in microseconds, or -1. One read: cheap enough for every tick of a timer. */
long long cgroup_read_cpu_usec(int group);

/* Removes the group and the empty groups below it; a group that is already gone is success. EBUSY when it stays populated. */
int cgroup_remove(int parent, const char *name);

/* Calls visit for each process of the group and below; stops at the first call that does not return 0 and returns that. */
int cgroup_each_process(int group, int (*visit)(pid_t pid, void *data), void *data);

#endif
