/*
 * The engine makes the namespaces around the finished tree and starts init in them.
 *
 * `bwrap` is executed in place of the stager, with the words of the launch file. `unshare` is the system call of that name
 * and needs nothing of the host, not even util-linux: before it builds the tree, the stager clones init's process, which makes
 * its namespaces and its /proc at the same time on another processor. That process waits, takes a clone of the finished tree into
 * its own mount namespace, makes it its root, and becomes init with the one capability that it still needs.
 */
#pragma once

#include "sandbox/root-fs.h"

#include <sys/types.h>

struct ids {
  uid_t uid;
  gid_t gid;
};

struct engine {
  const char *name;
  struct ids inside; /* the sandbox's, as it sees them */
  pid_t init;  /* unshare: as launch knows it; else 0 */
  int gate[2]; /* unshare: init's end, ours; a message when the ids are mapped, one with the tree when it stands */
};

/* The caller is in the mount namespace in which it builds the tree, and has no supplementary groups. `outside`: the sandbox's ids as
 * the host sees them. Not sooner than they are known: launch is still at work then, and two of the three share a processor. Failures
 * of all of these end the process with a report. */
void engine_begin(struct engine *engine, const struct stage *stage, const struct ids *outside);

/* A clone of the finished tree for init's process, `root` is its "/"; -1 where the engine is a program, which needs none. */
int engine_clone_tree(const struct engine *engine, int root);

/* Gives it to init's process; and, to the init of a blank sandbox, the zones. */
void engine_give(const struct engine *engine, const int *trees, int count);

/*
 * Called in a new user namespace by its maker: bounds how much it may take of the quotas of its maker, to whom the kernel counts
 * everything in it. Where /proc/sys cannot be written, as in most containers, nothing is bounded.
 */
void engine_bound_quotas(void);
int engine_is_own(const struct launchfile *file);

/* Becomes that program, with the sandbox's ids. */
_Noreturn void engine_execute(const struct stage *stage);

/* Becomes init where there are no namespaces: `init` is opened with O_PATH, and `stage->network` goes to it as INIT_NETWORK. */
_Noreturn void engine_execute_init(const struct stage *stage, int init);

/* Maps one uid and one gid, neither of them root, into the user namespace of `process` ("self", or a pid); all others show as the overflow id. */
void engine_map_ids(const char *process, const struct ids *inside, const struct ids *outside);
