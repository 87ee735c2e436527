/*
 * The stager: launch's child, which assembles the complete root of the sandbox in its own mount namespace and hands
 * it to the engine.
 *
 * Theory of operation. As root it unshares the mount namespace, otherwise user and mount namespace together, and makes
 * every mount private, so nothing that the host mounts later arrives. It opens each zone once without following a
 * symbolic link, compares device and inode with what the plan saw, and works on that descriptor from then on. Trees are
 * cloned detached, get their flags (and as root their idmap) while no path leads to them, and are attached to a tmpfs that
 * becomes "/". Meanwhile launch looks through the writable zones; the stager waits for what it finds before it shows the first of them.
 * Mount points are made in file systems of our own only. At the end it lets init's process go on and is gone, or
 * (bwrap) root becomes an unprivileged id with no groups, no_new_privs is set, and the engine is executed with nothing but
 * the run's id as its environment.
 *
 * A blank sandbox is built from a plan with slots: in the places of its zones there are mount points alone. Then the stager stays. When a
 * command comes, launch names the directories; the stager opens them as it opens every zone, and gives them to init, which mounts them.
 */
#pragma once

#include "lib/launch-file.h"

#include <sys/types.h>

struct stage {
  const struct launchfile *file;
  int launch_file; /* memfd for init */
  int command;     /* memfd for init */
  int control;     /* init's end of the control socket; what of the writable zones is covered comes by it (lib/covers.h) */
  int errors;      /* write end of the engine's error pipe */
  const char *init; /* path of the init program; opened again in the new mount namespace, where it can be cloned */
  int layer;       /* directory of copy-on-write zones; -1 without */
  int stdio[3];    /* the command's own streams */
  int zones;       /* of a blank sandbox: by it launch names the directories (lib/any-directory.h); else -1 */
  int network;     /* the helper's socket (lib/net-protocol.h), -1 where the network is not restricted */
  pid_t launch;    /* whose death is ours */
  const char *layer_id; /* its name in its directory */
  const char *id;  /* of the run, the one variable of the engine's environment: by it the janitor knows its processes */
};

/* Never returns: ends when the engine has the tree, becomes it, or reports and ends with 125. */
_Noreturn void stage_and_exec(const struct stage *stage);
