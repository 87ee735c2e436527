/* The last hardening, done by init inside the namespaces. Every function reports and ends the process when a step fails. */
#pragma once

#include "lib/launch-file.h"

#include <linux/filter.h>

/* Needs CAP_SETPCAP. */
void drop_bounding_set(void);
/* All others. */
void drop_capabilities(void);
/* From now on this process can signal only the processes that it starts. */
void scope_signals(void);
/* Landlock, all capabilities with the bounding set, no_new_privs. */
void give_up_privileges(const struct launchfile *file);

/*
 * The same in two steps, for the init of a blank sandbox, which has zones to mount in between: no process under Landlock may. The process of
 * the command takes the second step before it. `keeps_signals`: those of the process reach its own children alone.
 */
struct confinement {
  int rules; /* -1: without Landlock */
};
struct confinement confine_prepare(const struct launchfile *file, int keeps_signals);
void confine_enter(const struct confinement *confinement);

/* The filter of the launch file, empty where it is off; of one file, for it is read into one place. 0, or -1 with errno. */
int seccomp_read(const struct launchfile *file, struct sock_fprog *program);
/* Installs it on the calling process; the last step before execve. 0, or -1 with errno. */
/*
 * Where processors are held by affinity, nothing gives them back: sched_setaffinity is refused with EPERM, in 32-bit programs too. To be called
 * before any other filter, which may refuse this. Returns 0, or -1 with errno.
 */
int processors_hold(const struct launchfile *file);
int seccomp_install(const struct sock_fprog *program);

/* A pseudo-terminal of the sandbox's own /dev/pts. It has the size of `like`, if that is a terminal, before there is a command: one
 * that asks at once gets a real size, and no signal about a change of it. */
void terminal_open(int *master, int *slave, int like);
