/* abstract listen|connect NAME: a socket in the abstract namespace, which belongs to a network namespace and to no file system. */
#include "answer.h"
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **words) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = count > 2 ? strlen(words[2]) : 0;
  if (length == 0 || length + 1 > sizeof address.sun_path) return 2;
  memcpy(address.sun_path + 1, words[2], length);
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (strcmp(words[1], "connect") == 0) {
    answer("connect", connect(fd, (struct sockaddr *)&address, size));
    return 0;
  }
  answer("listen", bind(fd, (struct sockaddr *)&address, size) < 0 ? -1 : listen(fd, 1));
  fflush(stdout);
  sleep(60);
  return 0;
}
