/*
 * What a program waits for: descriptors, and points in time. One thread.
 *
 * Theory of operation. A program consists of parts. Before each wait each of them says what it waits for, and when it is due; after it
 * each has its turn, in the order of the table, and finds in its sources what has happened. What is to be waited for without being said
 * anew, such as one of many connections, has `ready`, which is called before the parts.
 * The first descriptors are given to poll(2). It needs nothing that the kernel could refuse, while a user's watches of epoll can be used
 * up by a command, and what epoll costs at the start is more than a run's few turns give back. All further ones are in a set of epoll:
 * thousands of connections cost a turn no more than one.
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
