#include "net/terminator.h"

#include "lib/fd-message.h"
#include "lib/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX (HOST_NAME_BYTES + 160)

struct terminated {
  const char *name;
  uint16_t port;
};

static struct terminated *all;
static size_t count;
static struct source channel = {.fd = -1};
static uint64_t last;

int terminator_read(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  all = calloc(file->count + 1, sizeof *all);
  if (!all) return -1;
  while (launchfile_next(file, &position, &entry)) {
    uint64_t port;
    if (entry.verb != V_NET_TERMINATE) continue;
    if (parse_number(entry.word[1], UINT16_MAX, &port) < 0 || port == 0) return errno = EINVAL, -1;
    all[count++] = (struct terminated){entry.word[0], (uint16_t)port};
  }
  return 0;
}

/* Answers are read so that they do not pile up. */
static void on_channel(struct source *source, uint32_t events) {
  char nothing[4096];
  (void)events;
  ssize_t got = recv(source->fd, nothing, sizeof nothing, MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) loop_close(source);
}

int terminator_on(int fd) {
  if (count == 0) return close(fd);
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -1;
  channel = (struct source){.fd = fd, .ready = on_channel};
  return loop_watch(&channel, EPOLLIN);
}

int terminator_serves(const struct host *host, uint16_t port) {
  for (size_t i = 0; host && i < count; i++)
    if (all[i].port == port && strcmp(all[i].name, host->name) == 0) return 1;
  return 0;
}

/* A name in canonical form needs no quoting. */
static int give(int fd, const char *side, const struct host *host, uint16_t port) {
  char text[MESSAGE_MAX];
  int size = snprintf(text, sizeof text, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"id\":%" PRIu64 ",\"side\":\"%s\",\"host\":\"%s\",\"port\":%u}}\n",
                      last, side, host->name, port);
  if (size < 0 || (size_t)size >= sizeof text) return errno = EMSGSIZE, -1;
  return message_send(channel.fd, text, (size_t)size, &fd, 1);
}

int terminator_take(const struct host *host, uint16_t port, int outside) {
  int pair[2];
  if (channel.fd < 0) return errno = EPIPE, -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) return -1;
  last++;
  int is_given = give(outside, "outside", host, port) == 0 && give(pair[1], "inside", host, port) == 0;
  close(pair[1]);
  if (!is_given) close(pair[0]);
  return is_given ? pair[0] : -1;
}
