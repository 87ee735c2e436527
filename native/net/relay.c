#include "net/relay.h"

#include "lib/loop.h"
#include "net/questions.h"
#include "net/resolver.h"
#include "net/rows.h"
#include "net/sockets.h"
#include "net/stock.h"
#include "net/terminator.h"
#include "net/timers.h"
#include "net/upstream.h"
#include "net/verdicts.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DIAL_NS 10000000000ull /* for one address */
/* One buffer for all; what a slow reader leaves of it stays in memory. */
#define CHUNK_MAX (1u << 20)
#define CHUNK_MIN (4u << 10)
#define KEPT_MAX (64u << 20)
#define ROUNDS 4 /* for one connection, then it is the others' turn */

struct end {
  struct source source; /* first: its connection is found by it */
  struct connection *connection;
};

/* Bytes from one end to the other. */
struct flow {
  struct end *from, *to;
  char *kept; /* what `to` has not taken yet */
  size_t size, at;
  uint64_t left; /* that `to` gets; what comes after it goes nowhere */
  int is_read;   /* `from` has sent its last byte */
  int is_passed; /* and `to` knows it */
};

struct connection {
  struct timer dialling; /* of one address */
  struct waiter waiter;
  struct end inside, outside;
  struct flow up, down;
  struct host *host; /* NULL = `literal` */
  struct address literal;
  uint16_t port;
  struct net_row *row; /* NULL = there are too many */
  struct address address[HOST_ADDRESSES_MAX]; /* as they were when the dialling began */
  int count, tried;
  struct host *asked; /* of the resolver; NULL = it does not wait */
  int is_tunnelled; /* `outside` leads to the operator's proxy */
  struct upstream_answer answer;
  int is_dialled; /* some address was tried */
  int is_published; /* `outside` is a socket of the stock, and the server is inside */
  int error;      /* why it could not be made, so far */
  void (*failed)(int fd, const struct host *host, const struct address *address, uint16_t port, int error); /* NULL = by a reset */
  uint64_t in, out; /* bytes */
};

static char buffer[CHUNK_MAX];
static size_t kept_bytes;
static unsigned connections, connections_max;

void relay_limit(unsigned max) { connections_max = max; }

/* ---- the end of a connection ---- */

static void drop_kept(struct flow *flow) {
  kept_bytes -= flow->size;
  free(flow->kept);
  flow->kept = NULL;
  flow->size = flow->at = 0;
}

static void give_back(struct source *source) {
  if (source->fd < 0 || loop_watch(source, 0) < 0) return;
  stock_return(source->fd);
  source->fd = -1;
}

static void finish(struct connection *connection) {
  timer_stop(&connection->dialling);
  rows_end(connection->row, connection->inside.source.fd, connection->in, connection->out);
  if (connection->asked) resolver_forget(connection->asked, &connection->waiter);
  drop_kept(&connection->up), drop_kept(&connection->down);
  if (connection->is_published) give_back(&connection->outside.source);
  loop_close(&connection->inside.source), loop_close(&connection->outside.source);
  loop_free(connection);
  connections--;
}

static void abort_connection(struct connection *connection) {
  socket_reset_at_end(connection->inside.source.fd);
  if (connection->outside.source.fd >= 0 && !connection->is_published) socket_reset_at_end(connection->outside.source.fd);
  finish(connection);
}

/* A client of a proxy gets an answer in the proxy's protocol. */
static void fail_connection(struct connection *connection) {
  int fd = connection->inside.source.fd, at = connection->tried > 0 ? connection->tried - 1 : 0;
  if (!connection->failed) return abort_connection(connection);
  connection->inside.source.fd = -1;
  connection->failed(fd, connection->host, &connection->address[at], connection->port, connection->error);
  finish(connection);
}

/* ---- copying ---- */

/* Less and less as more is kept, so that the sum has a bound. */
static size_t chunk(void) {
  size_t room = kept_bytes < KEPT_MAX ? (KEPT_MAX - kept_bytes) / 8 : 0;
  return room > CHUNK_MAX ? CHUNK_MAX : room < CHUNK_MIN ? CHUNK_MIN : room;
}

static int keep(struct flow *flow, const char *bytes, size_t size) {
  flow->kept = malloc(size);
  if (!flow->kept) return -1;
  memcpy(flow->kept, bytes, size);
  flow->size = size;
  flow->at = 0;
  kept_bytes += size;
  return 0;
}

static ssize_t send_some(int fd, const char *bytes, size_t size) {
  ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
  return is_not_yet(sent) ? 0 : sent;
}

static void count_bytes(struct flow *flow, size_t size) {
  struct connection *connection = flow->from->connection;
  int is_out = (flow == &connection->up) != connection->is_published; /* a published server answers what comes up */
  *(is_out ? &connection->out : &connection->in) += size;
  if (connection->row) *(is_out ? &connection->row->bytes_out : &connection->row->bytes_in) += size;
}

/* 1 = all has gone, 0 = not yet. */
static int send_kept(struct flow *flow) {
  if (!flow->kept) return 1;
  ssize_t sent = send_some(flow->to->source.fd, flow->kept + flow->at, flow->size - flow->at);
  if (sent < 0) return -1;
  flow->at += (size_t)sent;
  if (flow->at < flow->size) return 0;
  drop_kept(flow);
  return 1;
}

/* 1 = there may be more. */
static int copy_once(struct flow *flow) {
  ssize_t got = recv(flow->from->source.fd, buffer, chunk(), 0);
  if (got < 0) return is_not_yet(got) ? 0 : -1;
  if (got == 0) return flow->is_read = 1, 0;
  if ((uint64_t)got > flow->left) got = (ssize_t)flow->left;
  if (flow->left != UINT64_MAX) flow->left -= (uint64_t)got;
  if (got == 0) return 1;
  count_bytes(flow, (size_t)got);
  ssize_t sent = send_some(flow->to->source.fd, buffer, (size_t)got);
  if (sent < 0) return -1;
  if (sent == got) return 1;
  return keep(flow, buffer + sent, (size_t)(got - sent));
}

/* Half-closed connections stay so: the other direction continues. */
static int pass_end(struct flow *flow) {
  if (!flow->is_read || flow->kept || flow->is_passed) return 0;
  flow->is_passed = 1;
  return shutdown(flow->to->source.fd, SHUT_WR);
}

static int copy(struct flow *flow) {
  int more = send_kept(flow);
  for (int round = 0; more > 0 && round < ROUNDS && !flow->is_read && !flow->kept; round++) more = copy_once(flow);
  return more < 0 ? -1 : pass_end(flow);
}

/* An end that can neither be read nor has to be written is not watched: the kernel would report its hang-up again and again. */
static int watch_end(struct end *end, const struct flow *out_of, const struct flow *into) {
  uint32_t events = (!out_of->is_read && !out_of->kept ? EPOLLIN : 0) | (into->kept ? EPOLLOUT : 0);
  return loop_watch(&end->source, events);
}

static void go_on(struct connection *connection) {
  if (copy(&connection->up) < 0 || copy(&connection->down) < 0) return abort_connection(connection);
  if (connection->up.is_passed && connection->down.is_passed) return finish(connection);
  if (watch_end(&connection->inside, &connection->up, &connection->down) < 0 ||
      watch_end(&connection->outside, &connection->down, &connection->up) < 0)
    abort_connection(connection);
}

static void on_end(struct source *source, uint32_t events) {
  struct connection *connection = ((struct end *)source)->connection;
  if (events & EPOLLERR) return abort_connection(connection);
  go_on(connection);
}

/* ---- dialling ---- */

static void dial_next(struct connection *connection);

static void on_time(struct timer *timer) {
  struct connection *connection = (struct connection *)((char *)timer - offsetof(struct connection, dialling));
  connection->error = ETIMEDOUT;
  dial_next(connection);
}

/* A second row for a connection that was allowed and had another result. */
static void count_again(const struct net_row *row, enum net_verdict verdict) {
  if (row) (void)rows_count(row->host, row->port, verdict, row->rule);
}

/* The connection that was made goes to the terminator; what the command sends and gets goes by the one that comes in its place. */
static int pass_to_terminator(struct connection *connection) {
  struct source *source = &connection->outside.source;
  if (loop_watch(source, 0) < 0) return -1;
  int fd = terminator_take(connection->host, connection->port, source->fd);
  loop_close(source);
  source->fd = fd;
  return fd < 0 ? -1 : 0;
}

/* The command reaches the host from now on. */
static void go_through(struct connection *connection) {
  struct source *source = &connection->outside.source;
  timer_stop(&connection->dialling);
  if (terminator_serves(connection->host, connection->port) && pass_to_terminator(connection) < 0) {
    connection->error = ECONNREFUSED;
    count_again(connection->row, NET_UNREACHABLE);
    return fail_connection(connection);
  }
  source->ready = on_end;
  go_on(connection);
}

static void on_answer(struct source *source, uint32_t events) {
  struct connection *connection = ((struct end *)source)->connection;
  (void)events;
  int heard = upstream_hear(source->fd, &connection->answer);
  if (heard > 0) go_through(connection);
  else if (heard < 0) connection->error = ECONNREFUSED, dial_next(connection);
}

static void ask_proxy(struct connection *connection) {
  struct source *source = &connection->outside.source;
  connection->answer = (struct upstream_answer){.size = 0};
  source->ready = on_answer;
  if (upstream_ask(source->fd, connection->host, connection->port) < 0 || loop_watch(source, EPOLLIN) < 0) dial_next(connection);
}

static void on_dialled(struct source *source, uint32_t events) {
  struct connection *connection = ((struct end *)source)->connection;
  int error = 0;
  socklen_t size = sizeof error;
  (void)events;
  if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error) return connection->error = error, dial_next(connection);
  (connection->is_tunnelled ? ask_proxy : go_through)(connection);
}

/* Each address gets a new socket, a published server one of the stock: after an IPv4 address it reaches no IPv6 one any more. */
static int dial(struct connection *connection, const struct address *address) {
  struct sockaddr_storage name;
  struct source *source = &connection->outside.source;
  socklen_t size = address_to_socket(address, connection->is_tunnelled ? upstream_port() : connection->port, &name);
  if (connection->is_published) give_back(source);
  loop_close(source);
  *source = (struct source){.ready = on_dialled};
  source->fd = connection->is_published ? stock_use(name.ss_family) : socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (source->fd < 0) return -1;
  socket_hurry(source->fd);
  if (connect(source->fd, (struct sockaddr *)&name, size) < 0 && errno != EINPROGRESS) return connection->error = errno, -1;
  timer_start(&connection->dialling, DIAL_NS, on_time);
  return loop_watch(source, EPOLLOUT);
}

/* Each address is judged just before it is dialled. */
static void dial_next(struct connection *connection) {
  while (connection->tried < connection->count) {
    const struct address *address = &connection->address[connection->tried++];
    int may_dial = !connection->host || connection->is_tunnelled || verdict_of_address(connection->host, address, connection->port);
    if (!may_dial) connection->error = EACCES;
    connection->is_dialled |= may_dial;
    if (may_dial && dial(connection, address) == 0) return;
  }
  if (connection->is_dialled || connection->count == 0) count_again(connection->row, NET_UNREACHABLE);
  fail_connection(connection);
}

static void ask_resolver(struct connection *connection, struct host *host) {
  connection->asked = host;
  if (resolver_ask(host, &connection->waiter) == 0) return;
  connection->asked = NULL;
  fail_connection(connection);
  hosts_release(host);
}

/* Where this host knows no address the name alone was judged. One that leads to private addresses only stays closed. */
static int may_tunnel(const struct connection *connection, const struct host *host) {
  if (host->state != HOST_FOUND) return 1;
  for (int i = 0; i < host->count; i++)
    if (verdict_of_address(host, &host->address[i], connection->port)) return 1;
  return 0;
}

static void begin_tunnel(struct connection *connection, struct host *host) {
  if (hosts_place(host) < 0 || !may_tunnel(connection, host)) return connection->error = EACCES, fail_connection(connection);
  connection->is_tunnelled = 1;
  ask_resolver(connection, upstream_host());
}

static void on_resolved(struct waiter *waiter, struct host *host) {
  struct connection *connection = (struct connection *)((char *)waiter - offsetof(struct connection, waiter));
  connection->asked = NULL;
  if (!connection->is_tunnelled && upstream_serves(host, connection->port)) return begin_tunnel(connection, host);
  /* A name that came by a proxy gets a stand-in although no client asked for its address: a host without one is forgotten. */
  connection->count = host->state == HOST_FOUND && hosts_place(host) == 0 ? host->count : 0;
  memcpy(connection->address, host->address, sizeof connection->address);
  dial_next(connection);
}

static void reach(struct connection *connection) {
  if (!connection->host) {
    connection->address[0] = connection->literal;
    connection->count = 1;
    return dial_next(connection);
  }
  ask_resolver(connection, connection->host);
}

/* ---- accepting ---- */

static struct connection *new_connection(int fd) {
  struct connection *connection = connections < connections_max ? calloc(1, sizeof *connection) : NULL;
  if (!connection) return NULL;
  connection->inside = (struct end){{.fd = fd, .ready = on_end}, connection};
  connection->outside = (struct end){{.fd = -1}, connection};
  connection->up = (struct flow){.from = &connection->inside, .to = &connection->outside, .left = UINT64_MAX};
  connection->down = (struct flow){.from = &connection->outside, .to = &connection->inside, .left = UINT64_MAX};
  connection->error = EHOSTUNREACH;
  connection->waiter.resolved = on_resolved;
  connections++;
  return connection;
}

int relay_to_server(int client, uint16_t port, struct net_row *row) {
  struct connection *connection = new_connection(client);
  if (!connection) return -1;
  memcpy(connection->address, ADDRESS_LOOPBACK, sizeof ADDRESS_LOOPBACK);
  connection->count = 2;
  connection->is_published = 1;
  connection->port = port;
  connection->row = row;
  dial_next(connection);
  return 0;
}

/* The address of an accepted socket is the one that the command dialled. */
static void on_accepted(int fd) {
  struct sockaddr_storage name;
  struct address address;
  socklen_t size = sizeof name;
  uint16_t port;
  struct net_row *row;
  if (getsockname(fd, (struct sockaddr *)&name, &size) < 0 || address_of_socket((struct sockaddr *)&name, &address, &port) < 0) return socket_reset(fd);
  struct host *host = address_is_v4(&address) ? hosts_find_by_stand_in(address_v4(&address)) : NULL;
  if (!host) host = hosts_find_of_loopback(&address);
  if (host && questions_hold(host->name, port, fd, on_accepted)) return;
  rows_judge(fd);
  int is_allowed = verdict_of_connection(host ? host->name : NULL, &address, port, &row).is_allowed;
  rows_judge(-1);
  if (is_allowed && relay_begin(&(struct relay_request){.fd = fd, .host = host, .literal = address, .port = port, .row = row, .left = UINT64_MAX}) == 0) return;
  if (is_allowed) count_again(row, NET_TOO_MANY);
  socket_reset(fd);
}

/* Both ends get what is kept for them as soon as there are two. */
static int keep_first(struct connection *connection, const struct relay_request *request) {
  if (request->first_size && keep(&connection->up, request->first, request->first_size) < 0) return -1;
  if (request->reply_size && keep(&connection->down, request->reply, request->reply_size) < 0) return -1;
  if (request->first_size) count_bytes(&connection->up, request->first_size);
  return 0;
}

int relay_begin(const struct relay_request *request) {
  struct connection *connection = new_connection(request->fd);
  if (!connection) return -1;
  connection->host = request->host;
  connection->literal = request->literal;
  connection->port = request->port;
  connection->row = request->row;
  connection->failed = request->failed;
  connection->up.left = request->left;
  if (keep_first(connection, request) < 0) return connection->inside.source.fd = -1, finish(connection), -1;
  socket_hurry(request->fd);
  reach(connection);
  return 0;
}

static void on_listener(struct source *source, uint32_t events) {
  (void)events;
  for (int fd, i = 0; i < ROUNDS && (fd = socket_accept(source->fd)) >= 0; i++) on_accepted(fd);
}

int relay_on(int fd) {
  struct source *listener = calloc(1, sizeof *listener);
  if (!listener) return -1;
  *listener = (struct source){.fd = fd, .ready = on_listener};
  return loop_watch(listener, EPOLLIN);
}
