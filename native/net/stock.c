#include "net/stock.h"

#include "lib/net-protocol.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct stock {
  int fd[NET_STOCK], left;
} stock_v4, stock_v6;

int stock_is_empty(void) { return stock_v4.left == 0; }

static struct stock *stock_of(int fd) {
  int family;
  socklen_t size = sizeof family;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0) return NULL;
  return family == AF_INET6 ? &stock_v6 : &stock_v4;
}

int stock_take(int fd) {
  struct stock *stock = stock_of(fd);
  if (!stock) return -1;
  if (stock->left == NET_STOCK) return errno = E2BIG, -1;
  stock->fd[stock->left++] = fd;
  return 0;
}

int stock_use(int family) {
  struct stock *stock = family == AF_INET6 ? &stock_v6 : &stock_v4;
  return stock->left > 0 ? stock->fd[--stock->left] : -1;
}

/* Disconnects the socket, so that it can be connected again; the rest of its last connection is reset (tcp(7), AF_UNSPEC). */
void stock_return(int fd) {
  struct sockaddr nothing = {.sa_family = AF_UNSPEC};
  if (connect(fd, &nothing, sizeof nothing) < 0 || stock_take(fd) < 0) close(fd);
}
