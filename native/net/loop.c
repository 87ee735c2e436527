#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define EVENTS_MAX 64

static int queue = -1;

/* What has been given to loop_free; the first word of each links it to the next. */
static void *discarded;

int loop_open(void) {
  queue = epoll_create1(EPOLL_CLOEXEC);
  return queue < 0 ? -1 : 0;
}

int loop_watch(struct source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  int operation = source->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (source->events == events) return 0;
  if (epoll_ctl(queue, operation, source->fd, &event) < 0) return -1;
  source->events = events;
  return 0;
}

void loop_close(struct source *source) {
  if (source->fd >= 0) close(source->fd);
  source->fd = -1;
  source->events = 0;
}

void loop_free(void *memory) {
  *(void **)memory = discarded;
  discarded = memory;
}

static void free_discarded(void) {
  while (discarded) {
    void *next = *(void **)discarded;
    free(discarded);
    discarded = next;
  }
}

int loop_turn(int timeout_ms) {
  struct epoll_event events[EVENTS_MAX];
  int count = epoll_wait(queue, events, EVENTS_MAX, timeout_ms);
  if (count < 0) return errno == EINTR ? 0 : -1;
  for (int i = 0; i < count; i++) {
    struct source *source = events[i].data.ptr;
    if (source->fd >= 0) source->ready(source, events[i].events);
  }
  free_discarded();
  return 0;
}
