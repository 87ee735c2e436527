/*
 * Everything that the helper waits for only so long: answers of servers, connections that are dialled, silent clients, persons. Each has
 * a timer, and those that run are in one list.
 */
#pragma once

#include <stdint.h>

struct timer {
  struct timer *next, **link; /* NULL = it does not run */
  uint64_t until;             /* CLOCK_MONOTONIC */
  void (*expired)(struct timer *timer);
};

/* Starts it anew. */
void timer_start(struct timer *timer, uint64_t nanoseconds, void (*expired)(struct timer *timer));
/* Must come before its memory goes. */
void timer_stop(struct timer *timer);

/* A part of the loop. */
uint64_t timers_due(void *of);
void timers_check(void *of);
