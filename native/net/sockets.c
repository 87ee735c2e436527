#include "net/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int socket_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) usleep(1000);
  return fd;
}

int is_not_yet(ssize_t got) { return got < 0 && (errno == EAGAIN || errno == EINTR); }

void socket_hurry(int fd) {
  int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void socket_reset_at_end(int fd) {
  struct linger now = {.l_onoff = 1};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now); /* a plain end is the worst that comes of a failure */
}

void socket_reset(int fd) {
  socket_reset_at_end(fd);
  close(fd);
}
