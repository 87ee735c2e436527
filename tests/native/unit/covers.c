#include "lib/covers.h"
#include "lib/fd-message.h"
#include "lib/sealed-memory.h"
#include "unit.h"

#include <sys/socket.h>

static void make_pair(int ends[2]) { EXPECT_NUMBER(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0); }

static void close_pair(const int ends[2]) { close(ends[0]), close(ends[1]); }

UNIT("the stager gets the covers of each zone as launch has found them") {
  struct guard_cover covers[] = {{.path = ".git/config", .identity = {3, 4}, .type = 0100000},
                                 {.path = ".git", .writable = 1, .kept = 2, .identity = {5, 6}, .type = 0040000}};
  struct guard_zone zones[] = {{.source = "/s", .target = "/t", .fd = -1, .cover = covers, .covers = 2}, {.source = "/u", .target = "/v", .fd = -1}};
  struct guard sent = {.zone = zones, .zones = 2}, got = {0};
  int ends[2];
  make_pair(ends);
  EXPECT_NUMBER(covers_send(ends[0], &sent), 0);
  EXPECT_NUMBER(covers_receive(ends[1], &got), 0);
  close_pair(ends);
  EXPECT_NUMBER(got.zones, 2);
  const struct guard_zone *first = guard_zone_at(&got, "/t"), *second = guard_zone_at(&got, "/v");
  EXPECT(first && second && !guard_zone_at(&got, "/s"));
  EXPECT(first->covers == 2 && second->covers == 0);
  EXPECT_TEXT(first->cover[0].path, ".git/config");
  EXPECT(!first->cover[0].writable && first->cover[0].kept == 0 && first->cover[0].identity.dev == 3 && first->cover[0].identity.ino == 4);
  EXPECT_TEXT(first->cover[1].path, ".git");
  EXPECT(first->cover[1].writable && first->cover[1].kept == 2 && first->cover[1].type == 0040000);
}

/* The stager's answer to `size` bytes in place of the covers. */
static int receive(const char *bytes, size_t size) {
  struct guard got = {0};
  int ends[2], fd = memory_sealed(bytes, size, "covers");
  make_pair(ends);
  EXPECT_NUMBER(message_send(ends[0], "", 1, &fd, 1), 0);
  int done = covers_receive(ends[1], &got);
  close_pair(ends);
  close(fd);
  return done;
}

UNIT("covers that are cut, or claim to be more than there are, are none") {
  static char whole[4096];
  size_t covers = 1, size = 0;
  struct guard_cover cover = {.path = NULL};
  memcpy(whole, &covers, sizeof covers), size += sizeof covers;
  memcpy(whole + size, "/t", 3), size += 3;
  memcpy(whole + size, &cover, sizeof cover), size += sizeof cover;
  memcpy(whole + size, ".git", 5), size += 5;
  EXPECT_NUMBER(receive(whole, size), 0); /* the control */
  for (size_t cut = 1; cut < size; cut++) EXPECT_NUMBER(receive(whole, cut), -1);
  covers = SIZE_MAX;
  memcpy(whole, &covers, sizeof covers);
  EXPECT_NUMBER(receive(whole, size), -1);
}

UNIT("a stager whose launch is gone has no covers") {
  struct guard got = {0};
  int ends[2];
  make_pair(ends);
  close(ends[0]);
  EXPECT_NUMBER(covers_receive(ends[1], &got), -1);
  EXPECT_NUMBER(errno, EPIPE);
  close(ends[1]);
}

UNIT("a message without covers is none") {
  struct guard got = {0};
  int ends[2];
  make_pair(ends);
  EXPECT_NUMBER(message_send(ends[0], "", 1, NULL, 0), 0);
  EXPECT_NUMBER(covers_receive(ends[1], &got), -1);
  close_pair(ends);
}

UNIT("launch hears that its stager is gone") {
  struct guard_zone zone = {.source = "/s", .target = "/t", .fd = -1};
  struct guard guard = {.zone = &zone, .zones = 1};
  int ends[2];
  make_pair(ends);
  close(ends[1]);
  EXPECT_NUMBER(covers_send(ends[0], &guard), -1);
  EXPECT(errno == EPIPE || errno == ECONNRESET);
  close(ends[0]);
}

UNIT("what the stager has said before its end is heard also where it has not read the covers") {
  struct guard_zone zone = {.source = "/s", .target = "/t", .fd = -1};
  struct guard guard = {.zone = &zone, .zones = 1};
  static int fds[MESSAGE_DESCRIPTORS_MAX];
  int ends[2], count;
  char text[8] = "";
  make_pair(ends);
  EXPECT_NUMBER(covers_send(ends[0], &guard), 0);
  EXPECT_NUMBER(message_send(ends[1], "why", 4, NULL, 0), 0);
  close(ends[1]);
  EXPECT_NUMBER(message_receive(ends[0], text, sizeof text, 0, fds, &count), 4);
  EXPECT_TEXT(text, "why");
  EXPECT_NUMBER(message_receive(ends[0], text, sizeof text, 0, fds, &count), 0);
  close(ends[0]);
}
