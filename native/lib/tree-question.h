/*
 * The messages between a run and the watcher of large zones (runner/tree-watcher.h), where one is up. A run asks which directories of an index have
 * changed since the index was made.
 *
 * They go through the SOCK_SEQPACKET socket WATCHER_SOCKET next to the indexes, where only this user can be. The first question comes with a descriptor of the
 * zone, and its answer with one of the index; those that follow on the same connection name the index by its generation.
 */
#pragma once

#include <stdint.h>

#define WATCHER_SOCKET ".watcher"
/* An empty file: a run could have used a watcher, and none was there. A host of runs that finds it starts one. */
#define WATCHER_WANTED ".watcher-wanted"

/* More are asked for by their times: a list of so many would save nothing. */
#define TREE_CHANGED_MAX 4096

struct tree_question {
  uint64_t device, inode, mount; /* of the zone's root */
  uint64_t hides;                /* lib/tree-index.h */
  uint64_t generation;           /* 0 = any */
};

struct tree_answer {
  uint64_t generation; /* 0 = not known, or not yet: ask for the times */
  uint64_t size;       /* of the index */
  uint32_t count;      /* of those that have changed */
  uint32_t changed[TREE_CHANGED_MAX];
};

/* A connection to the watcher that has its socket in `place`; -1 = there is none. */
int tree_connect(int place);
/* `descriptor` is sent, unless it is -1, and gets what came with the answer. 1 = `answer` is filled; 0 = nothing is known, and the connection is of no
 * use any more. */
int tree_ask(int watcher, const struct tree_question *question, int *descriptor, struct tree_answer *answer);
