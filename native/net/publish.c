#include "net/publish.h"

#include "lib/report-failure.h"
#include "net/address.h"
#include "lib/loop.h"
#include "net/relay.h"
#include "net/rows.h"
#include "net/sockets.h"
#include "net/stock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define STEP "net: publish"
#define BACKLOG 128

struct published {
  struct source source; /* first: it is found by it */
  const char *address;
  uint16_t port, inside;
  struct net_row *row;
};

static struct published *all;
static size_t count;

static uint16_t port_of(const char *word) {
  uint64_t port;
  if (parse_number(word, UINT16_MAX, &port) < 0 || port == 0) fail_with(EINVAL, STEP, word);
  return (uint16_t)port;
}

static int listen_at(const struct entry *entry, uint16_t port) {
  struct address address;
  struct sockaddr_storage name;
  char place[96];
  int on = 1;
  snprintf(place, sizeof place, "%s port %u", entry->word[0], port);
  if (address_parse(entry->word[0], &address) < 0) fail_with(EINVAL, STEP, place);
  socklen_t size = address_to_socket(&address, port, &name);
  int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  /* Connections of a run before may still be in TIME_WAIT. Two listeners cannot share a port by it. */
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) fail(STEP, place);
  if (name.ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) fail(STEP, place);
  if (bind(fd, (struct sockaddr *)&name, size) < 0 || listen(fd, BACKLOG) < 0) fail(STEP, place);
  return fd;
}

static void on_client(struct source *source, uint32_t events) {
  struct published *published = (struct published *)source;
  (void)events;
  int fd = socket_accept(source->fd);
  if (fd < 0) return;
  if (stock_is_empty()) return socket_reset(fd);
  if (published->row) published->row->connections++;
  if (relay_to_server(fd, published->inside, published->row) < 0) socket_reset(fd);
}

void publish_listen(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  all = calloc(file->count + 1, sizeof *all);
  if (!all) fail(STEP, "");
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb != V_NET_PUBLISH) continue;
    uint16_t port = port_of(entry.word[1]);
    all[count++] = (struct published){.source = {.fd = listen_at(&entry, port), .ready = on_client}, .address = entry.word[0], .port = port, .inside = port_of(entry.word[2])};
  }
}

int publish_begin(void) {
  for (size_t i = 0; i < count; i++) {
    char inside[8];
    snprintf(inside, sizeof inside, "%u", all[i].inside);
    all[i].row = rows_count(all[i].address, all[i].port, NET_PUBLISHED, inside);
    if (all[i].row) all[i].row->connections = 0;
    if (loop_watch(&all[i].source, EPOLLIN) < 0) return -1;
  }
  return 0;
}
