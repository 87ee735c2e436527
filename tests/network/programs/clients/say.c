/* say HOST PORT: asks a web server by getaddrinfo and connect, and prints its answer. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int dial(const struct addrinfo *found) {
  for (; found; found = found->ai_next) {
    int fd = socket(found->ai_family, found->ai_socktype, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0) return fd;
    perror("connect");
    if (fd >= 0) close(fd);
  }
  return -1;
}

int main(int argc, char **argv) {
  static const char request[] = "GET /say HTTP/1.0\r\n\r\n";
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  char answer[4096];
  if (argc != 3) return 2;
  int error = getaddrinfo(argv[1], argv[2], &hints, &found);
  if (error) return fprintf(stderr, "%s\n", gai_strerror(error)), 1;
  int fd = dial(found);
  if (fd < 0 || write(fd, request, strlen(request)) < 0) return 1;
  for (ssize_t got; (got = read(fd, answer, sizeof answer)) > 0;) fwrite(answer, 1, (size_t)got, stdout);
  return 0;
}
