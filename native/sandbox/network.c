#include "sandbox/network.h"

#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "sandbox/network-addresses.h"
#include "sandbox/network-nft.h"
#include "sandbox/network-range.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_TRANSPARENT 19        /* IP_TRANSPARENT, linux/in.h */
#define IPV6_TRANSPARENT_OPTION 75 /* IPV6_TRANSPARENT, linux/in6.h */
#define IPV6_FREEBIND_OPTION 78    /* IPV6_FREEBIND, Linux 4.15 */
#define BACKLOG 1024

#define STEP "network: sockets"

/* Decided with the plan: what fails here never leads to another way. */
static int has_rules(const struct launchfile *file) {
  struct entry by;
  if (!launchfile_find(file, V_NET_BY, &by)) fail_with(EINVAL, "network: launch file", "");
  return strcmp(by.word[0], "nftables") == 0;
}

int network_is_restricted(const struct launchfile *file) {
  struct entry net;
  return launchfile_find(file, V_NET, &net) && strcmp(net.word[0], "restricted") == 0;
}

int network_is_none(const struct launchfile *file) {
  struct entry net;
  return launchfile_find(file, V_NET, &net) && strcmp(net.word[0], "none") == 0;
}

int network_open_names(void) {
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0) return fd;
  return close_with(fd, -1);
}

static void add(struct network_sockets *sockets, enum net_socket_kind kind, int fd) {
  if (sockets->kinds.count == NET_SOCKETS_MAX) fail_with(E2BIG, STEP, "");
  sockets->fd[sockets->kinds.count] = fd;
  sockets->kinds.kind[sockets->kinds.count++] = kind;
}

static int open_socket(const char *address, uint16_t port, int type, int transparent) {
  struct sockaddr_storage name;
  struct range own = range_parse(address);
  socklen_t size = range_socket_name(&own, port, &name);
  int on = 1, is_v4 = name.ss_family == AF_INET;
  int fd = socket(name.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) fail(STEP, address);
  /* A local route is enough to have an IPv4 address; an IPv6 one would have to be an interface's. */
  if (!is_v4 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND_OPTION, &on, sizeof on) < 0))
    fail(STEP, address);
  if (transparent && setsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IPV4_TRANSPARENT : IPV6_TRANSPARENT_OPTION, &on, sizeof on) < 0)
    fail("network: transparent socket", address);
  if (bind(fd, (struct sockaddr *)&name, size) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)) fail(STEP, address);
  return fd;
}

static void open_stock(const struct launchfile *file, struct network_sockets *sockets) {
  struct entry published;
  if (!launchfile_find(file, V_NET_PUBLISH, &published)) return;
  for (int i = 0; i < 2 * NET_STOCK; i++) {
    int family = i < NET_STOCK ? AF_INET : AF_INET6, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 && family == AF_INET6 && errno == EAFNOSUPPORT) return;
    if (fd < 0) fail(STEP, "stock");
    add(sockets, NET_SOCKET_STOCK, fd);
  }
}

static int has_proxy(const struct launchfile *file) {
  struct entry proxy;
  return launchfile_find(file, V_NET_PROXY, &proxy);
}

/* One listener takes what the rules divert. */
static void open_diverted(const struct launchfile *file, struct network_sockets *sockets) {
  network_make_rules(file);
  add(sockets, NET_SOCKET_REFUSED, network_open_log());
  add(sockets, NET_SOCKET_DIVERTED, open_socket(NET_ADDRESS, NET_DIVERT_PORT, SOCK_STREAM, 1));
  if (network_has_v6(file)) add(sockets, NET_SOCKET_DIVERTED, open_socket(NET_ADDRESS_V6, NET_DIVERT_PORT, SOCK_STREAM, 1));
}

static int kernel_has_v6(void) {
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? errno != EAFNOSUPPORT : close(fd) == 0;
}

static void open_listeners(const struct launchfile *file, struct network_sockets *sockets) {
  struct entry entry;
  size_t position = 0;
  uint64_t port;
  while (launchfile_next_of(file, V_NET_LISTEN, &position, &entry)) {
    if (parse_number(entry.word[1], UINT16_MAX, &port) < 0 || port == 0) fail_with(EINVAL, STEP, entry.word[1]);
    if (strcmp(entry.word[0], "::1") == 0 && !kernel_has_v6()) continue;
    add(sockets, NET_SOCKET_DIVERTED, open_socket(entry.word[0], (uint16_t)port, SOCK_STREAM, 0));
  }
}

void network_open(const struct launchfile *file, struct network_sockets *sockets) {
  sockets->kinds.count = 0;
  network_make_addresses(file);
  add(sockets, NET_SOCKET_DNS_UDP, open_socket(NET_ADDRESS, 53, SOCK_DGRAM, 0));
  add(sockets, NET_SOCKET_DNS_TCP, open_socket(NET_ADDRESS, 53, SOCK_STREAM, 0));
  if (has_proxy(file)) {
    add(sockets, NET_SOCKET_PROXY, open_socket(NET_ADDRESS, NET_PROXY_PORT, SOCK_STREAM, 0));
    add(sockets, NET_SOCKET_SOCKS, open_socket(NET_ADDRESS, NET_SOCKS_PORT, SOCK_STREAM, 0));
  }
  if (has_rules(file)) open_diverted(file, sockets);
  open_listeners(file, sockets);
  open_stock(file, sockets);
}

void network_hand_over(const struct network_sockets *sockets, int helper) {
  if (message_send(helper, &sockets->kinds, sizeof sockets->kinds, sockets->fd, (int)sockets->kinds.count) < 0)
    fail("network: hand over sockets", "");
  for (uint32_t i = 0; i < sockets->kinds.count; i++) close(sockets->fd[i]);
}

void network_make(const struct launchfile *file, int helper) {
  struct network_sockets sockets = {.kinds = {.count = 0}};
  network_open(file, &sockets);
  network_hand_over(&sockets, helper);
}

void network_await_helper(int helper) {
  char byte;
  ssize_t got = read(helper, &byte, 1);
  if (got < 0) fail("network: helper", "");
  if (got == 0) fail_with(0, "network: helper ended", "");
  close(helper);
}
