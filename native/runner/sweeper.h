/*
 * The sweeper: a second process of a run with protected names, which only waits. Launch sweeps at the end of
 * a run, and then ends it. When launch is killed, by a person or by the kernel for memory, the sandbox ends with it, but files that its
 * command made at protected names would stay and be run by the next program of the host: the sweeper sets them aside.
 *
 * It is a copy of launch, made as soon as PID 1 of the sandbox is known, in a new session: a signal to launch's group misses it.
 * A launch that is killed in the instant between the start of the command and that moment has none.
 */
#pragma once

#include "lib/guard.h"

#include <sys/types.h>

struct sweeper {
  struct guard *guard;
  const char *run; /* its id */
  pid_t engine;    /* ends the sandbox when it ends */
  int cgroup;      /* -1 without */
  int ends_alone;  /* the engine, once launch is gone, and kills before it does: without a pid namespace nothing ends with it */
};

/* Returns its pid, 0 where there is nothing to sweep, -1 with errno. waitpid reports it only with __WCLONE. */
pid_t sweeper_start(const struct sweeper *sweeper);
/* It does nothing any more, whatever becomes of launch. */
void sweeper_dismiss(pid_t pid);
/* And is gone. */
void sweeper_end(pid_t pid);
