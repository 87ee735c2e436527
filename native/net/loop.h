/* What the helper waits for: descriptors, each with what is done when something happens on it. One thread. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

struct source {
  void *discarded; /* the word of loop_free; `fd` stays what it is */
  int fd; /* -1 = closed: events that are already under way are dropped */
  uint32_t events; /* as the kernel knows them */
  void (*ready)(struct source *source, uint32_t events);
};

/* -1 with errno. */
int loop_open(void);
/* Watches, or watches for something else; 0 events = not any more. -1 with errno. */
int loop_watch(struct source *source, uint32_t events);
/* Closes the descriptor. The memory of the source must stay until the next loop_turn; loop_free frees it then. */
void loop_close(struct source *source);
void loop_free(void *memory);
/* Waits and does what is to be done. -1 with errno. */
int loop_turn(int timeout_ms);
