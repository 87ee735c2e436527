/*
 * Connections of the command, each to one outside. It is accepted before the one outside is made, so a host that cannot be reached
 * shows as a connection that is reset. Bytes are copied as they come, without a look at them.
 */
#pragma once

#include "lib/net-protocol.h"
#include "net/hosts.h"

#include <stdint.h>

/* Takes a listener of diverted connections. -1 with errno. */
int relay_on(int fd);
/* A client of the host, to a port of the sandbox's loopback, by sockets of the stock (net/stock.h). -1: the client stays the caller's. */
int relay_to_server(int client, uint16_t port, struct net_row *row);
/* A client of the proxy, and where it goes. */
struct relay_request {
  int fd; /* the client's */
  struct host *host; /* NULL = `literal` */
  struct address literal;
  uint16_t port;
  struct net_row *row;
  const char *first; /* for the server, before what is read from the client */
  size_t first_size;
  uint64_t left; /* so much is read from the client after that; what it sends then goes nowhere */
  const char *reply; /* for the client, when the connection outside is made */
  size_t reply_size;
  /* In the place of a reset, where none can be made: the descriptor is given back. EACCES: no address of the host may be dialled. */
  void (*failed)(int fd, const struct host *host, const struct address *address, uint16_t port, int error);
};

/* Connects the client; `failed` may be called before this returns. -1 = there are too many connections; the descriptor stays. */
int relay_begin(const struct relay_request *request);
/* At most so many connections at once; two descriptors each. */
void relay_limit(unsigned connections);
