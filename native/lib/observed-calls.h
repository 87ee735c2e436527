/*
 * The system calls that an observed command reports (sandbox/observe.c has the filter, runner/observer.c the other end): what each does with
 * the path that it names, and where its arguments are.
 */
#pragma once

#include <stddef.h>

enum observed_act {
  ACT_OPEN,     /* `flags` are those of open */
  ACT_OPEN_HOW, /* ... in a struct open_how */
  ACT_CREATE,   /* a name that must not be there yet */
  ACT_REPLACE,  /* a name that may be there */
  ACT_REMOVE,   /* a name that must be there */
  ACT_CHANGE,   /* a file that is there; no path: one that is open already */
  ACT_EXECUTE,
  ACT_ENTER,
  ACT_LOOK,     /* asks about a file; `flags` are AT_*. Programs do it ten times as often as all the rest */
  ACT_CONNECT,  /* `path` is a struct sockaddr, and `flags` its length */
};

struct observed_call {
  int number;
  unsigned char act;
  signed char directory; /* the argument with the descriptor that the path is relative to; -1 = the working directory */
  signed char path, flags; /* -1 = none */
};

/* A call that names two paths has two rows. */
extern const struct observed_call observed_calls[];
extern const size_t OBSERVED_CALLS;
