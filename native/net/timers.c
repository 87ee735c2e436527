#include "net/timers.h"

#include "lib/clock.h"

#include <stddef.h>

static struct timer *timers;

void timer_start(struct timer *timer, uint64_t nanoseconds, void (*expired)(struct timer *timer)) {
  timer_stop(timer);
  *timer = (struct timer){.next = timers, .link = &timers, .until = now_ns() + nanoseconds, .expired = expired};
  if (timers) timers->link = &timer->next;
  timers = timer;
}

void timer_stop(struct timer *timer) {
  if (!timer->link) return;
  if ((*timer->link = timer->next)) timer->next->link = timer->link;
  timer->link = NULL;
}

static struct timer *first(void) {
  struct timer *first = timers;
  for (struct timer *timer = timers; timer; timer = timer->next)
    if (timer->until < first->until) first = timer;
  return first;
}

uint64_t timers_due(void *of) {
  const struct timer *timer = first();
  return (void)of, timer ? timer->until : 0;
}

/* An expired timer may stop others, and start new ones. */
void timers_check(void *of) {
  uint64_t now = now_ns();
  for (struct timer *timer; (timer = first()) && timer->until <= now;) {
    timer_stop(timer);
    timer->expired(timer);
  }
  (void)of;
}
