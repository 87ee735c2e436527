/* The helper of a restricted network (native/net/main.c), as launch has it: a child that is started before the stager, serves as long as
 * the run lasts, and reports when it is over. */
#pragma once

#include "lib/launch-file.h"
#include "lib/loop.h"
#include "lib/net-protocol.h"

#include <sys/types.h>

struct net_helper {
  pid_t pid;  /* 0 = there is none, or not any more */
  int report; /* our end of its socket: -1 without */
  struct source names; /* of a sandbox without network: where names are asked for, until the first question */
  int inside; /* then: our end of the socket of which its sockets came; -1 without */
  int terminator; /* the channel of a terminator, until the helper has it; -1 without */
  int has_grants; /* its owner's socket is next to the record of the run */
  struct net_report *result; /* NULL until the end; never freed */
};
#define NET_HELPER_NONE {.pid = 0, .report = -1, .names = SOURCE_NONE, .inside = -1, .terminator = -1}

struct net_helper_start {
  const char *program;
  int launch_file; /* a separate memfd: it reads from the start; -1 = it only answers that names do not exist */
  int terminator;  /* its channel (net/terminator.h); -1 = there is none */
  int grants;      /* a listener for the owner of the run (net/grants.h); -1 = there is none */
  int control;     /* takes reports of failures; -1 = they are dropped */
  uid_t id;        /* to be taken, 0 = ours */
};

/* Returns the socket that is for the process which makes the sockets inside, or -1 with errno. */
int net_helper_start(struct net_helper *helper, const struct net_helper_start *start);

/* A sandbox without network has asked for a name. Its bytes are read by a helper, never by us; without one the command has to wait for
 * its resolver's time-out. */
void net_helper_serve_names(struct net_helper *helper, const struct net_helper_start *start);

/* Nothing of the command is left: asks for the report, and waits for the end. May be called more than once. */
void net_helper_finish(struct net_helper *helper);

/* It has been reaped before its time. */
void net_helper_lost(struct net_helper *helper);
