#include "lib/clock.h"
#include "lib/loop.h"
#include "unit.h"

#include <sys/socket.h>

#define MANY 100
#define SOON_NS 20000000ull

static struct connection {
  struct source source;
  int served;
} all[MANY];

static void on_byte(struct source *source, uint32_t events) {
  struct connection *connection = (struct connection *)source;
  char byte;
  connection->served += (events & EPOLLIN) && read(source->fd, &byte, 1) == 1;
  if (connection == &all[0]) loop_close(&all[1].source), loop_close(&all[MANY - 1].source);
}

UNIT("a loop serves what is ready, however much it is, and nothing that was closed before its turn") {
  static const struct part none[] = {{NULL, NULL}};
  EXPECT_NUMBER(loop_open(), 0);
  for (int i = 0; i < MANY; i++) {
    int ends[2];
    EXPECT_NUMBER(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    all[i].source = (struct source){.fd = ends[0], .ready = on_byte};
    EXPECT_NUMBER(loop_watch(&all[i].source, EPOLLIN), 0);
    EXPECT_NUMBER(write(ends[1], "", 1), 1);
    close(ends[1]);
  }
  for (int turns = 0; turns < MANY && !all[MANY - 2].served; turns++) EXPECT_NUMBER(loop_turn(none, NULL), 0);
  for (int i = 0; i < MANY; i++) EXPECT_NUMBER(all[i].served > 0, i != 1 && i != MANY - 1), loop_close(&all[i].source);
}

/* A file of the disk is always ready. */
static struct source file;
static int wants_file, seen;

static uint64_t watch(void *of) {
  (void)of;
  if (wants_file) EXPECT_NUMBER(loop_watch(&file, EPOLLIN), 0);
  return now_ns() + SOON_NS;
}

static void look(void *of) { *(uint32_t *)of = file.got, seen = 1; }
static void look_again(void *of) { EXPECT_NUMBER(seen, 1), EXPECT_NUMBER(*(uint32_t *)of, file.got), seen = 2; }

UNIT("parts have their turns in order, and what they do not ask for again is not waited for") {
  static const struct part parts[] = {{watch, look}, {NULL, look_again}, {NULL, NULL}};
  uint32_t got = 0;
  uint64_t begun = now_ns();
  file = (struct source){.fd = fileno(tmpfile())};
  wants_file = 1;
  EXPECT_NUMBER(loop_turn(parts, &got), 0);
  EXPECT_NUMBER(got, EPOLLIN);
  EXPECT(now_ns() < begun + SOON_NS);
  wants_file = 0;
  EXPECT_NUMBER(loop_turn(parts, &got), 0);
  EXPECT_NUMBER(got, 0);
  EXPECT(now_ns() >= begun + SOON_NS);
  EXPECT_NUMBER(seen, 2);
  loop_close(&file);
}
