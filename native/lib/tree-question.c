#include "lib/tree-question.h"

#include "lib/fd-message.h"
#include "lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A watcher answers in a tenth of a millisecond. To ask for the times of a large zone takes about as long as this. */
#define ANSWER_MS 10

int tree_connect(int place) {
  int watcher = socket_to(socket_address(place, WATCHER_SOCKET).sun_path, SOCK_SEQPACKET | SOCK_NONBLOCK);
  if (watcher >= 0 && peer_is_same_user(watcher)) return watcher;
  if (watcher < 0 && (errno == ENOENT || errno == ECONNREFUSED)) close_with(openat(place, WATCHER_WANTED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), 0);
  return close_with(watcher, -1);
}

static int is_whole(const struct tree_answer *answer, ssize_t size) {
  return size >= (ssize_t)offsetof(struct tree_answer, changed) && answer->count <= TREE_CHANGED_MAX && size == (ssize_t)(offsetof(struct tree_answer, changed) + answer->count * sizeof *answer->changed);
}

static int ask(int watcher, const struct tree_question *question, int *descriptor, struct tree_answer *answer) {
  int given[MESSAGE_DESCRIPTORS_MAX], count = 0;
  struct pollfd readable = {watcher, POLLIN, 0};
  if (message_send(watcher, question, sizeof *question, descriptor, *descriptor >= 0) < 0 || poll(&readable, 1, ANSWER_MS) != 1) return *descriptor = -1, 0;
  ssize_t size = message_receive(watcher, answer, sizeof *answer, MSG_DONTWAIT, given, &count);
  *descriptor = count == 1 ? given[0] : -1;
  for (int i = 0; i < count && count != 1; i++) close(given[i]);
  return is_whole(answer, size) && answer->generation;
}

/* An answer that comes too late would be taken for that of the next question. */
int tree_ask(int watcher, const struct tree_question *question, int *descriptor, struct tree_answer *answer) {
  if (ask(watcher, question, descriptor, answer)) return 1;
  *descriptor = close_with(*descriptor, -1);
  (void)shutdown(watcher, SHUT_RDWR);
  return 0;
}
