#include "lib/loop.h"

#include "lib/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define MS 1000000ull
/* Sources in each call of poll, the set included. */
#define POLLED_MAX 32
#define EVENTS_MAX 64

/* The first place is that of the set; so many have been used. */
static struct pollfd polled[POLLED_MAX] = {{.fd = -1, .events = POLLIN}};
static struct source *sources[POLLED_MAX];
static int places = 1;

/* Memory to be freed; the first word of each piece links it to the next. */
static void *discarded;

int loop_open(void) {
  polled[0].fd = epoll_create1(EPOLL_CLOEXEC);
  return polled[0].fd < 0 ? -1 : 0;
}

static int change_set(struct source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  int operation = source->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  return epoll_ctl(polled[0].fd, operation, source->fd, &event);
}

/* 0 = all are taken. */
static int find_place(void) {
  int place = 1;
  while (place < places && sources[place]) place++;
  return place < POLLED_MAX ? place : 0;
}

/* Both calls have the same numbers for the same events. */
static void change_place(struct source *source, uint32_t events) {
  sources[source->place] = events ? source : NULL;
  polled[source->place] = (struct pollfd){events ? source->fd : -1, (short)events, 0};
  if (source->place == places) places++;
}

int loop_watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || source->events == events) return 0;
  if (source->events == 0) source->place = find_place();
  if (!source->place && !source->ready) return errno = ENFILE, -1; /* the set would remember it */
  if (source->place) change_place(source, events);
  else if (change_set(source, events) < 0) return -1;
  source->events = events;
  return 0;
}

void loop_close(struct source *source) {
  (void)loop_watch(source, 0);
  if (source->fd >= 0) close(source->fd);
  source->fd = -1;
  source->events = source->got = 0;
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

static void serve(struct source *source, uint32_t events) {
  if (source->ready) source->ready(source, events);
  else source->got = events;
}

static void serve_set(void) {
  struct epoll_event events[EVENTS_MAX];
  int count = epoll_wait(polled[0].fd, events, EVENTS_MAX, 0);
  for (int i = 0; i < count; i++) {
    struct source *source = events[i].data.ptr;
    if (source->fd >= 0) serve(source, events[i].events);
  }
}

static int milliseconds_until(uint64_t due) {
  uint64_t now = now_ns(), left = due > now ? (due - now + MS - 1) / MS : 0;
  return left > 1000000 ? 1000000 : (int)left;
}

/* Parts say anew what they wait for. */
static void forget_parts(void) {
  for (int place = 1; place < places; place++) {
    struct source *source = sources[place];
    if (!source || source->ready) continue;
    source->events = source->got = 0;
    sources[place] = NULL;
    polled[place].fd = -1;
  }
}

static int prepare(const struct part *parts, void *of) {
  uint64_t first = 0;
  forget_parts();
  for (const struct part *part = parts; part->prepare || part->turn; part++) {
    uint64_t due = part->prepare ? part->prepare(of) : 0;
    if (due && (!first || due < first)) first = due;
  }
  return first ? milliseconds_until(first) : -1;
}

int loop_turn(const struct part *parts, void *of) {
  int count = poll(polled, (nfds_t)places, prepare(parts, of));
  if (count < 0 && errno != EINTR) return -1;
  for (int place = 1; count > 0 && place < places; place++)
    if (sources[place] && polled[place].revents) serve(sources[place], (uint32_t)polled[place].revents);
  if (count > 0 && polled[0].revents) serve_set();
  for (const struct part *part = parts; part->prepare || part->turn; part++)
    if (part->turn) part->turn(of);
  free_discarded();
  return 0;
}
