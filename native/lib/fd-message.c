#include "lib/fd-message.h"

#include "lib/clock.h"
#include "lib/files.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(int) * MESSAGE_DESCRIPTORS_MAX)];
};

int message_send(int socket, const void *bytes, size_t size, const int *fds, int count) {
  union control control;
  struct iovec part = {(void *)(uintptr_t)bytes, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    size_t length = sizeof *fds * (size_t)count;
    control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(length)};
    memcpy(CMSG_DATA(&control.header), fds, length);
    message.msg_control = control.room;
    message.msg_controllen = CMSG_SPACE(length);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static ssize_t receive_once(int socket, void *bytes, size_t size, int flags, int *fds, int *count) {
  union control control;
  struct iovec part = {bytes, size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  ssize_t got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
  *count = 0;
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    *count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof *fds);
    memcpy(fds, CMSG_DATA(header), sizeof *fds * (size_t)*count);
  }
  return got;
}

/* If the other side ended with one of our messages unread, the kernel reports that first, once; its last words come after it. */
ssize_t message_receive(int socket, void *bytes, size_t size, int flags, int *fds, int *count) {
  ssize_t got = receive_once(socket, bytes, size, flags, fds, count);
  return got < 0 && errno == ECONNRESET ? receive_once(socket, bytes, size, flags, fds, count) : got;
}

int stream_receive(int socket, void *bytes, size_t size, uint64_t until) {
  for (char *at = bytes; size > 0;) {
    uint64_t now = now_ns();
    struct pollfd readable = {socket, POLLIN, 0};
    if (now >= until || poll(&readable, 1, (int)((until - now) / 1000000) + 1) < 0) return -1;
    ssize_t got = recv(socket, at, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return -1;
    at += got, size -= (size_t)got;
  }
  return 0;
}

struct sockaddr_un socket_address(int directory, const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%s%s", directory, name[0] ? "/" : "", name);
  return address;
}

int socket_to(const char *path, int type) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof name.sun_path) return errno = ENAMETOOLONG, -1;
  memcpy(name.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  return fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) == 0 ? fd : close_with(fd, -1);
}

int peer_is_same_user(int socket) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}
