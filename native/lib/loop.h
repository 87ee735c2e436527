/*
 * The loop of a program with one thread: it waits for descriptors and for points in time.
 *
 * Theory of operation. A program consists of parts. Before each wait, each part watches its sources and returns the time at which it is
 * due. After the wait, each part has its turn, in the order of the table; `got` of its sources has the events. A source with `ready`,
 * such as one of many connections, stays watched, and `ready` is called before the turns.
 * The first 31 sources are given to poll(2). The kernel cannot refuse that, while a command can use up its user's watches of epoll; and
 * the short run of a sandbox never gets back the time to set up epoll. Further sources are in a set of epoll, so a turn with
 * thousands of connections takes as long as one with few.
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

struct source {
  void *discarded; /* the word of loop_free; `fd` stays what it is */
  int fd; /* -1 = closed: events that are already under way are dropped */
  int place; /* of the loop */
  uint32_t events; /* that are waited for */
  uint32_t got; /* that have happened in the last wait; not where there is `ready` */
  void (*ready)(struct source *source, uint32_t events);
};

#define SOURCE_NONE {.fd = -1}

/* Either may be NULL; both are at the end of a table. */
struct part {
  /* Watches what it waits for. Returns when it is due (CLOCK_MONOTONIC), 0 = at no time. */
  uint64_t (*prepare)(void *of);
  void (*turn)(void *of);
};

/* For more than a few sources: makes the set. -1 with errno. */
int loop_open(void);
/* Watches, or watches for something else; 0 events = not any more. Nothing is done for what is closed. Without `ready` it is for the next
 * wait. -1 with errno: only where there are more than 31. */
int loop_watch(struct source *source, uint32_t events);
/* Closes the descriptor. The memory of the source must stay until the next loop_turn; loop_free frees it then. */
void loop_close(struct source *source);
void loop_free(void *memory);
/* Waits and does what is to be done. -1 with errno. */
int loop_turn(const struct part *parts, void *of);
