/*
 * net: the network of one restricted sandbox, as a process on the host.
 *
 *   net plan [ID]    ID: the user id to take, where root starts it
 *   net names [ID]   for a sandbox without network: no name is resolved, and the names that were asked for are noted
 *
 * Theory of operation. The sandbox's network namespace has only lo, and none of our processes. Init's process makes sockets in
 * it and sends them here (sandbox/network.c); a socket stays in the namespace in which it was made. This process answers the names that
 * the command asks for, accepts its connections to the addresses of these names, judges them by the rules of the plan, dials the
 * addresses of the name on the host's network, and copies. There is one for each run: it needs no name, no path and no authentication.
 * It ends with the run (the end of launch's socket), and writes its report then; should it be killed, names cannot be resolved and
 * connections are refused. lib/net-protocol.h has its descriptors.
 */
#include "lib/fd-message.h"
#include "lib/launch-file.h"
#include "lib/net-protocol.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "net/walls.h"
#include "net/grants.h"
#include "net/hosts.h"
#include "lib/loop.h"
#include "net/name-server.h"
#include "net/own-address.h"
#include "net/proxy.h"
#include "net/publish.h"
#include "net/refused.h"
#include "net/relay.h"
#include "net/rows.h"
#include "net/stock.h"
#include "net/terminator.h"
#include "net/timers.h"
#include "net/upstream.h"
#include "net/verdicts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void read_plan(void) {
  struct launchfile file;
  const char *problem = launchfile_read(NET_LAUNCH_FILE, &file);
  if (problem) fail("net: launch file", problem);
  close(NET_LAUNCH_FILE);
  if (verdicts_read(&file) < 0) fail("net: rules", "");
  if (hosts_read(&file) < 0) fail("net: names", "");
  if (own_address_open() < 0) fail("net: routes", "");
  if (terminator_read(&file) < 0) fail("net: terminator", "");
  if (upstream_read(&file) < 0) fail("net: upstream proxy", "");
  grants_read(&file);
  publish_listen(&file);
}

static uid_t id_of(int argc, char **argv) {
  uint64_t id = 0;
  int is_known = argc > 1 && (strcmp(argv[1], "plan") == 0 || strcmp(argv[1], "names") == 0);
  if (!is_known || argc > 3 || (argc == 3 && (parse_number(argv[2], UINT32_MAX - 1, &id) < 0 || id == 0)))
    fail_with(EINVAL, "net: usage", "net plan|names [ID]");
  return (uid_t)id;
}

static int serve(enum net_socket_kind kind, int fd) {
  switch (kind) {
    case NET_SOCKET_DNS_UDP: return name_server_on_udp(fd);
    case NET_SOCKET_DNS_TCP: return name_server_on_tcp(fd);
    case NET_SOCKET_DIVERTED: return relay_on(fd);
    case NET_SOCKET_REFUSED: return refused_on(fd);
    case NET_SOCKET_STOCK: return stock_take(fd);
    case NET_SOCKET_PROXY: return proxy_on(fd, PROXY_HTTP);
    case NET_SOCKET_SOCKS: return proxy_on(fd, PROXY_SOCKS);
  }
  return errno = EINVAL, -1;
}

static void take_sockets(void) {
  struct net_sockets sockets;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(NET_INSIDE, &sockets, sizeof sockets, 0, fds, &count);
  if (got == 0) _exit(125); /* the sandbox has failed, and said why */
  if (got != sizeof sockets || count < 0 || sockets.count != (uint32_t)count || count > NET_SOCKETS_MAX) fail_with(EBADMSG, "net: sockets", "");
  for (int i = 0; i < count; i++)
    if (serve((enum net_socket_kind)sockets.kind[i], fds[i]) < 0) fail("net: watch socket", "");
}

static void tell_ready(void) {
  if (send(NET_INSIDE, "", 1, MSG_NOSIGNAL) != 1) _exit(125); /* as above */
  close(NET_INSIDE);
  close(NET_CONTROL); /* its end of file tells launch that nothing is left inside */
}

static int is_over;

static void on_launch(struct source *source, uint32_t events) {
  (void)source, (void)events;
  is_over = 1;
}

static const struct part PARTS[] = {{timers_due, timers_check}, {NULL, NULL}};

int main(int argc, char **argv) {
  fail_through(NET_CONTROL);
  if (sys_close_range(NET_DESCRIPTORS_END, ~0u) < 0) fail("net: close_range", "");
  uid_t id = id_of(argc, argv);
  int has_plan = strcmp(argv[1], "plan") == 0;
  if (has_plan) read_plan();
  else close(NET_LAUNCH_FILE);
  struct source launch = {.fd = NET_REPORT, .ready = on_launch};
  if (loop_open() < 0 || loop_watch(&launch, EPOLLIN) < 0) fail("net: epoll", "");
  if (terminator_on(NET_TERMINATOR) < 0) fail("net: terminator", "");
  if (grants_on(NET_GRANTS) < 0) fail("net: grants", "");
  unsigned connections = confine(id);
  if (has_plan && connections == 0) fail_with(EMFILE, "net: descriptors", "ulimit -n");
  relay_limit(connections);
  take_sockets();
  if (publish_begin() < 0) fail("net: watch socket", "");
  tell_ready();
  while (!is_over)
    if (loop_turn(PARTS, NULL) < 0) return 125;
  refused_drain();
  return rows_send(NET_REPORT) < 0 ? 125 : 0;
}
