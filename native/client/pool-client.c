#include "client/pool-client.h"

#include "lib/clock.h"
#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/frames.h"
#include "lib/syscalls.h"
#include "lib/inherited.h"
#include "lib/seal.h"
#include "lib/status.h"
#include "lib/text.h"
#include "runner/freshness.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- the pool ---- */

/* Next to the records of runs: RUNTIME/llm-do/runs -> RUNTIME/llm-do/pool/NAME. */
static int open_pool(const struct launchfile *file) {
  struct entry runs, pool;
  char path[1000];
  if (!launchfile_find(file, V_POOL, &pool) || !launchfile_find(file, V_RUNS, &runs)) return -1;
  const char *slash = strrchr(runs.word[0], '/');
  if (!slash || strspn(pool.word[0], "0123456789abcdef") != 16 || pool.word[0][16]) return -1;
  if ((size_t)snprintf(path, sizeof path, "%.*s/pool/%s", (int)(slash - runs.word[0]), runs.word[0], pool.word[0]) >= sizeof path) return -1;
  int fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || cached_is_private(fd, S_IFDIR)) return fd;
  return close_with(fd, -1);
}

/* ---- a sandbox ---- */

/* rename(2) is the lock: one client wins it. Returns a connected socket or -1. */
static int claim(int pool, const char *name) {
  char claimed[80];
  if ((size_t)snprintf(claimed, sizeof claimed, "c%s", name + 1) >= sizeof claimed) return -1;
  struct sockaddr_un address = socket_address(pool, claimed);
  if (renameat(pool, name, pool, claimed) < 0) return -1;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && peer_is_same_user(fd)) return fd;
  if (fd >= 0) close(fd);
  unlinkat(pool, claimed, 0);
  return -1;
}

static int claim_any(int pool) {
  char room[1024] __attribute__((aligned(8)));
  int fd = -1;
  for (long got; fd < 0 && (got = sys_getdents(pool, room, sizeof room)) > 0;)
    for (long at = 0; fd < 0 && at < got;) {
      const struct directory_entry *entry = (const struct directory_entry *)(room + at);
      if (entry->name[0] == 'r') fd = claim(pool, entry->name);
      at += entry->size;
    }
  return fd;
}

/* ---- the command ---- */

/* umask(2) is the only way to read it; this process has one thread. */
static unsigned own_umask(void) {
  mode_t mask = umask(0);
  umask(mask);
  return mask;
}

/* The plan and the command in one message: it wakes the sandbox once. */
struct message {
  struct frame looked, plan, run;
  uint64_t looked_ns;
  const char *bytes; /* of the plan, or its seal; NULL = none is sent */
  int given[FRAME_DESCRIPTORS_MAX];
  char *block; /* never freed: the client is about to end, and takes no longer with it */
};

static int write_message(struct message *message, const struct claimant *claimant) {
  size_t size;
  capture_streams(claimant->capture, message->given);
  message->block = command_block(claimant->command, claimant->env, own_umask(), &size);
  if (!message->block || size > FRAME_RUN_MAX) return -1;
  message->run = (struct frame){FRAME_RUN, (uint32_t)size};
  return 0;
}

/* For a sandbox that is not our child: it looks whether it is what the plan asks for. */
static void write_plan(struct message *message, const struct sandbox *sandbox, const struct claimant *claimant) {
  const struct launchfile *file = claimant->file;
  struct entry check;
  if (sandbox->has_same_plan && launchfile_find(sandbox->is_blank ? claimant->plan : file, V_CHECK, &check)) {
    message->bytes = check.word[0];
    message->plan = (struct frame){FRAME_SAME, (uint32_t)strlen(check.word[0])};
    return;
  }
  message->bytes = file->bytes;
  message->plan = (struct frame){FRAME_GUARDS, (uint32_t)file->size};
}

/*
 * The runner of a blank sandbox is busy with the directories: we look for it whether the plan, which is its own, still holds. It is our plan
 * that we answer for, as in a cold run in this process.
 */
static int look(struct message *message, const struct sandbox *sandbox, const struct claimant *claimant) {
  if (!sandbox->is_blank || message->plan.kind != FRAME_SAME) return 0;
  message->looked_ns = now_ns();
  message->looked = (struct frame){FRAME_LOOKED, sizeof message->looked_ns};
  return is_fresh(claimant->plan) ? 0 : -1;
}

static int send_rest(int fd, struct iovec *parts, int count, size_t sent) {
  while (count > 0) {
    if (sent >= parts->iov_len) {
      sent -= parts->iov_len;
      parts++, count--;
      continue;
    }
    ssize_t got = send(fd, (char *)parts->iov_base + sent, parts->iov_len - sent, MSG_NOSIGNAL);
    if (got < 0 && errno != EINTR) return -1;
    if (got > 0) sent += (size_t)got;
  }
  return 0;
}

/* Our own child has the plan already, and gets no gate. */
static int send_message(int fd, struct message *message) {
  size_t looked = message->looked.size ? sizeof message->looked : 0;
  struct iovec parts[] = {{&message->looked, looked},
                          {&message->looked_ns, message->looked.size},
                          {&message->plan, sizeof message->plan},
                          {(char *)message->bytes, message->plan.size},
                          {&message->run, sizeof message->run},
                          {message->block, message->run.size}};
  int count = sizeof parts / sizeof *parts, skipped = message->bytes ? 0 : 4;
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof message->given)];
  } control;
  size_t given = sizeof message->given - (message->bytes ? 0 : sizeof *message->given);
  control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(given)};
  memcpy(CMSG_DATA(&control.header), message->given, given);
  struct msghdr header = {
      .msg_iov = parts + skipped, .msg_iovlen = (size_t)(count - skipped), .msg_control = control.room, .msg_controllen = CMSG_SPACE(given)};
  ssize_t sent = sendmsg(fd, &header, MSG_NOSIGNAL);
  return sent < 0 ? -1 : send_rest(fd, parts + skipped, count - skipped, (size_t)sent);
}

/* ---- its end ---- */

struct reply {
  struct frame header;
  size_t have;
  int taken, refused, signalled;
  uint32_t exit_code;
  char *json;
  size_t room;
};

/* Where the next bytes belong: the header, the exit status, then the JSON. */
static struct iovec next_room(struct reply *reply) {
  size_t have = reply->have, head = sizeof reply->header, code = head + sizeof reply->exit_code;
  if (have < head) return (struct iovec){(char *)&reply->header + have, head - have};
  if (have < code) return (struct iovec){(char *)&reply->exit_code + have - head, code - have};
  return (struct iovec){reply->json + have - code, head + reply->header.size - have};
}

static int is_whole(const struct reply *reply) {
  return reply->have >= sizeof reply->header && reply->have == sizeof reply->header + reply->header.size;
}

/* 1 = the last frame is here, 0 = more must come, -1 = the sandbox is gone. */
static int read_reply(int fd, struct reply *reply) {
  for (;;) {
    struct iovec room = next_room(reply);
    ssize_t got = recv(fd, room.iov_base, room.iov_len, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) return -1;
    reply->have += (size_t)got;
    uint32_t least = reply->header.kind == FRAME_STATUS ? sizeof reply->exit_code : 0;
    if (reply->have == sizeof reply->header && (reply->header.size > reply->room || reply->header.size < least)) return -1;
    if (!is_whole(reply)) continue;
    if (reply->header.kind == FRAME_STATUS) {
      size_t size = reply->header.size - sizeof reply->exit_code;
      reply->json[size < reply->room ? size : reply->room - 1] = 0;
      return 1;
    }
    if (reply->header.kind == FRAME_REFUSED) reply->refused = 1;
    if (reply->header.kind != FRAME_TAKEN) return -1;
    reply->taken = 1;
    reply->have = 0;
  }
}

static void send_signal(int fd, int signal) {
  struct {
    struct frame header;
    int32_t signal;
  } frame = {{FRAME_SIGNAL, sizeof(int32_t)}, signal};
  (void)!send(fd, &frame, sizeof frame, MSG_NOSIGNAL); /* if it is gone, the next read says so */
}

static void pass_on(int fd, int signals) {
  struct signalfd_siginfo info;
  if (read(signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD) send_signal(fd, (int)info.ssi_signo);
}

/* Only a client with a signal to forward must know whether the command was taken; otherwise it sleeps until the end. */
static enum claim wait_for_end(int fd, const struct claimant *claimant, struct reply *reply) {
  int must_know = 0, parent = claimant->parent;
  for (int end = 0; end == 0;) {
    struct pollfd watched[3 + CAPTURE_POLLS] = {
        {fd, must_know ? POLLIN : POLLRDHUP, 0}, {must_know ? -1 : claimant->signals, POLLIN, 0}, {must_know ? -1 : parent, POLLIN, 0}};
    capture_watch(claimant->capture, watched + 3);
    if (poll(watched, 3 + CAPTURE_POLLS, -1) < 0) {
      if (errno == EINTR) continue;
      return CLAIM_LOST;
    }
    capture_read(claimant->capture, watched + 3);
    if (!watched[0].revents && !watched[1].revents && !watched[2].revents) continue;
    end = read_reply(fd, reply);
    must_know = !reply->taken;
    if (watched[1].revents && reply->taken) reply->signalled = 1, pass_on(fd, claimant->signals);
    if (watched[2].revents && reply->taken) reply->signalled = 1, parent = -1, send_signal(fd, SIGTERM);
    if (end == 1) return CLAIM_DONE;
  }
  return reply->taken && !reply->refused ? CLAIM_LOST : CLAIM_NONE;
}

/* The reader of the gate has the run: the sandbox right before it starts the command, or we, and then it never will. */
static int take_back(int gate) {
  uint64_t opened;
  return fcntl(gate, F_SETFL, O_NONBLOCK) == 0 && read(gate, &opened, sizeof opened) == sizeof opened;
}

/* A sandbox that has been killed, or says that it was, need not have begun. A client that was stopped does not want it to begin. */
static int may_go_another_way(enum claim end, const struct reply *reply) {
  return !reply->signalled && (end == CLAIM_LOST || (end == CLAIM_DONE && (reply->exit_code == EXIT_SETUP || reply->exit_code == EXIT_KILLED)));
}

static enum claim run_in(int fd, int gate, const struct claimant *claimant, struct reply *reply) {
  enum claim how = wait_for_end(fd, claimant, reply);
  return may_go_another_way(how, reply) && take_back(gate) ? CLAIM_NONE : how;
}

static int is_of_plan(int pool, const struct launchfile *file) {
  char seal[MAC_TEXT];
  ssize_t length = readlinkat(pool, POOL_SEAL, seal, sizeof seal);
  return length == MAC_TEXT - 1 && cached_has_seal(file, seal, MAC_TEXT - 1);
}

/* Then its name has no slot. */
static int is_blank_pool(const struct launchfile *plan) {
  struct entry pool;
  return plan && launchfile_find(plan, V_POOL, &pool) && pool.word[0][0] != PLACE_SLOT;
}

/* The caller and its directories: a blank sandbox begins with them while the command is prepared. */
static int announce(int fd, const struct places *places) {
  static char words[PLACES_BYTES_MAX];
  struct inherited inherited;
  struct frame who = {FRAME_CALLER, sizeof inherited}, where = {FRAME_PLACES, (uint32_t)(places ? places_write(places, words) : 0)};
  struct iovec parts[] = {{&who, sizeof who}, {&inherited, sizeof inherited}, {&where, sizeof where}, {words, where.size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = places ? 4 : 2};
  if (inherited_read(&inherited) < 0) return -1;
  ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  return sent < 0 ? -1 : send_rest(fd, parts, (int)message.msg_iovlen, (size_t)sent);
}

void give_up_sandbox(struct sandbox *sandbox) {
  if (sandbox->socket >= 0) close(sandbox->socket);
  sandbox->socket = -1;
}

struct sandbox claim_blank(const struct launchfile *plan, const struct places *places) {
  return is_blank_pool(plan) ? claim_sandbox(plan, plan, places) : (struct sandbox){.socket = -1};
}

struct sandbox claim_sandbox(const struct launchfile *file, const struct launchfile *plan, const struct places *places) {
  struct sandbox sandbox = {.socket = -1, .is_blank = is_blank_pool(plan)};
  int pool = open_pool(file);
  if (pool < 0) return sandbox;
  sandbox.socket = claim_any(pool); /* it wakes up meanwhile */
  if (sandbox.socket >= 0 && announce(sandbox.socket, sandbox.is_blank ? places : NULL) < 0) give_up_sandbox(&sandbox);
  sandbox.has_same_plan = sandbox.socket >= 0 && is_of_plan(pool, sandbox.is_blank ? plan : file);
  close(pool);
  return sandbox;
}

enum claim run_claimed(const struct sandbox *sandbox, const struct claimant *claimant, char *json, size_t room) {
  static struct message message = {.given = {-1, -1, -1, -1}};
  struct reply reply = {.json = json, .room = room};
  int is_ready = write_message(&message, claimant) == 0 && (message.given[3] = eventfd(1, EFD_CLOEXEC)) >= 0;
  write_plan(&message, sandbox, claimant);
  /* A command that was not sent whole is never taken. */
  int is_sent = is_ready && look(&message, sandbox, claimant) == 0 && send_message(sandbox->socket, &message) == 0;
  enum claim end = is_sent ? run_in(sandbox->socket, message.given[3], claimant, &reply) : CLAIM_NONE;
  if (message.given[3] >= 0) close(message.given[3]);
  close(sandbox->socket);
  if (end != CLAIM_DONE) *json = 0;
  return end;
}

enum claim run_by(int launch, const struct claimant *claimant, char *json, size_t room) {
  static struct message message = {.given = {-1, -1, -1, -1}};
  struct reply reply = {.json = json, .room = room, .taken = 1};
  enum claim end = write_message(&message, claimant) < 0 || send_message(launch, &message) < 0 ? CLAIM_LOST : wait_for_end(launch, claimant, &reply);
  close(launch);
  if (end != CLAIM_DONE) *json = 0;
  return end;
}
