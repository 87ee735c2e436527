/*
 * Other commands for a sandbox that serves. Launch has no part in their lives: it checks who asks, puts the environment of the run into the
 * command, and hands everything on to init. What runs there, and its end, is between init's attendant (sandbox/exec-in.h) and the
 * program that asked (client/exec-in.c).
 */
#include "runner/run.h"

#include "lib/exec-in-socket.h"
#include "lib/files.h"
#include "lib/sealed-memory.h"
#include "lib/text.h"
#include "runner/stream-check.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

int run_serves(const struct run *run) {
  struct entry serve;
  return launchfile_find(&run->file, V_SERVE, &serve);
}

static int listen_in(int directory) {
  int on = 1, entry = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_un address = socket_address(directory, EXEC_IN_SOCKET);
  if (entry < 0) return -1;
  if (setsockopt(entry, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 && bind(entry, (struct sockaddr *)&address, sizeof address) == 0)
    return entry;
  return close_with(entry, -1);
}

/* The command has been executed: from now on there is something to enter, and the caller hears of it. */
int run_open_exec_in(struct run *run) {
  struct entry serve = {.word = {""}};
  int directory = launchfile_find(&run->file, V_SERVE, &serve) ? records_open(serve.word[0]) : -1;
  run->exec_in.fd = directory < 0 ? -1 : listen_in(directory);
  if (run->exec_in.fd < 0) run_record_failure(run, errno, "launch: entry", serve.word[0]);
  if (directory >= 0) close(directory);
  if (run->exec_in.fd < 0) return -1;
  (void)line_accept(&run->line); /* where the caller is gone its socket says so, too */
  return 0;
}

struct asked {
  struct request request;
  int fds[MESSAGE_DESCRIPTORS_MAX];
  int count;
  int is_own; /* the kernel says that our user has sent it */
};

static ssize_t receive(int entry, struct asked *asked) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof asked->fds) + CMSG_SPACE(sizeof(struct ucred))];
  } control;
  struct iovec part = {&asked->request, sizeof asked->request};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  ssize_t got = recvmsg(entry, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  for (struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    struct ucred peer;
    size_t size = header->cmsg_len - CMSG_LEN(0);
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_RIGHTS) memcpy(asked->fds, CMSG_DATA(header), size), asked->count = (int)(size / sizeof *asked->fds);
    if (header->cmsg_type != SCM_CREDENTIALS) continue;
    memcpy(&peer, CMSG_DATA(header), sizeof peer);
    asked->is_own = peer.uid == geteuid();
  }
  return got;
}

/* A command block in memory that its sender cannot change any more, nor let us wait for. */
static char *read_block(int fd, size_t *size) {
  int sealed = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & sealed) == sealed ? read_all(fd, FRAME_RUN_MAX, size) : NULL;
}

/* A block, taken apart: how many words are the command's, and where the words begin. */
struct block {
  uint64_t arguments, variables, umask;
  const char *words, *end;
};

static int take_apart(const char *bytes, size_t size, struct block *block) {
  const char *at = bytes;
  block->end = bytes + size;
  if (take_number(&at, block->end, UINT64_MAX, &block->arguments) < 0 || take_number(&at, block->end, UINT64_MAX, &block->variables) < 0 ||
      take_number(&at, block->end, UINT64_MAX, &block->umask) < 0)
    return -1;
  block->words = at;
  return size > 0 && !block->end[-1] ? 0 : -1;
}

/* Where the words after the first `count` begin; NULL where there are not so many. */
static const char *words_after(const char *at, const char *end, uint64_t count) {
  for (; count > 0 && at && at < end; count--) at += strlen(at) + 1;
  return count == 0 ? at : NULL;
}

/* `word` is NAME=VALUE: do the words up to `end` have that name, too? */
static int is_named(const char *at, const char *end, const char *word) {
  size_t name = strcspn(word, "=") + 1;
  for (; at < end; at += strlen(at) + 1)
    if (strncmp(at, word, name) == 0) return 1;
  return 0;
}

static int are_variables(const char *at, const char *end) {
  for (; at < end; at += strlen(at) + 1)
    if (*at == '=' || !strchr(at, '=')) return 0;
  return 1;
}

/* The parts of a block that was asked for. */
struct asked_words {
  const char *variables, *directory, *end; /* no directory: `directory` is `end` */
};

static int take_asked(const struct block *asked, struct asked_words *words) {
  words->end = asked->end;
  words->variables = words_after(asked->words, asked->end, asked->arguments);
  words->directory = words->variables ? words_after(words->variables, asked->end, asked->variables) : NULL;
  if (!words->directory || asked->arguments == 0 || !are_variables(words->variables, words->directory)) return -1;
  return words->directory == asked->end || words->directory + strlen(words->directory) + 1 == asked->end ? 0 : -1;
}

/* The words of the asked command, with the variables of the run where it has none of that name. Returns a sealed memfd, or -1. */
static int merge(const struct run *run, const struct block *asked) {
  struct block own;
  struct asked_words words;
  if (take_apart(run->command.block, run->command.size, &own) < 0 || take_asked(asked, &words) < 0) return -1;
  const char *variables = words_after(own.words, own.end, own.arguments);
  if (!variables) return -1;
  size_t kept = 0;
  FILE *out = text_begin();
  if (!out) return -1;
  for (const char *at = variables; at < own.end; at += strlen(at) + 1) kept += !is_named(words.variables, words.directory, at);
  fprintf(out, "%llu%c%llu%c%llu%c", (unsigned long long)asked->arguments, 0, (unsigned long long)(kept + asked->variables), 0, (unsigned long long)own.umask, 0);
  fwrite(asked->words, 1, (size_t)(words.variables - asked->words), out);
  for (const char *at = variables; at < own.end; at += strlen(at) + 1)
    if (!is_named(words.variables, words.directory, at)) put_word(out, at);
  fwrite(words.variables, 1, (size_t)(words.end - words.variables), out);
  return text_sealed("command");
}

/* Where nothing comes of it, the program that asked sees its socket close. */
static void hand_on(const struct run *run, struct asked *asked) {
  size_t size;
  struct block block;
  struct pollfd init = {run->engine.control.fd, POLLOUT, 0};
  int state = asked->request.state;
  struct request request = {
      .exec_in = asked->request.exec_in == EXEC_IN_TERMINAL ? EXEC_IN_TERMINAL : EXEC_IN_PLAIN,
      .state = state == EXEC_IN_KEEPS || state == EXEC_IN_RESETS ? state : 0,
  };
  for (int i = 0; i < 3; i++)
    if (stream_check(asked->fds[i]) < 0) return;
  char *bytes = read_block(asked->fds[3], &size);
  int merged = bytes && take_apart(bytes, size, &block) == 0 ? merge(run, &block) : -1;
  free(bytes);
  if (merged < 0) return;
  close(asked->fds[3]);
  asked->fds[3] = merged;
  request.own = (uint32_t)block.variables;
  if (poll(&init, 1, 0) == 1 && (init.revents & POLLOUT)) (void)message_send(run->engine.control.fd, &request, sizeof request, asked->fds, asked->count);
}

void run_on_exec_in(struct run *run) {
  static struct asked asked;
  asked = (struct asked){.count = 0};
  ssize_t got = receive(run->exec_in.fd, &asked);
  int is_whole = got == sizeof asked.request && asked.count == EXEC_IN_DESCRIPTORS;
  if (is_whole && asked.is_own && !run->stop.has_begun && run->engine.control.fd >= 0) hand_on(run, &asked);
  for (int i = 0; i < asked.count; i++) close(asked.fds[i]);
}
