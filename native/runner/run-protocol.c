#include "runner/run-protocol.h"

#include "lib/seal.h"
#include "lib/launch-cache.h"
#include "lib/fd-message.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define STREAM_MODE_MAX 8 /* bytes of a word about the streams, with its NUL */

static void drop(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* ---- the socket ---- */

/* Through the descriptor: a socket's address has room for 107 bytes only. */
static struct sockaddr_un address_of(const struct warm *warm, char first) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%c%s", warm->directory, first, warm->name);
  return address;
}

static int high(int fd) {
  int up = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 16);
  if (fd >= 0) close(fd);
  return up;
}

int warm_prepare(struct warm *warm, const char *directory, const char *id, const struct launchfile *file, const char *init) {
  copy_text(warm->name, sizeof warm->name, id);
  warm->own = file;
  warm->directory = high(records_open(directory));
  warm->mounts.list = high(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  warm->listener = high(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (warm->directory < 0 || warm->mounts.list < 0 || warm->listener < 0 || inherited_read(&warm->inherited) < 0) return -1;
  if (mounts_watch(&warm->mounts, file, init) < 0) return -1;
  struct sockaddr_un hidden = address_of(warm, '.');
  return bind(warm->listener, (struct sockaddr *)&hidden, sizeof hidden);
}

static int rename_socket(const struct warm *warm, char from, char to) {
  char old[RUN_ID_MAX + 3], new[RUN_ID_MAX + 3];
  snprintf(old, sizeof old, "%c%s", from, warm->name);
  snprintf(new, sizeof new, "%c%s", to, warm->name);
  return renameat(warm->directory, old, warm->directory, new);
}

static void remove_socket(const struct warm *warm) {
  char name[RUN_ID_MAX + 3];
  for (const char *first = ".rc"; *first; first++) {
    snprintf(name, sizeof name, "%c%s", *first, warm->name);
    unlinkat(warm->directory, name, 0);
  }
}

int warm_show(struct warm *warm) {
  if (listen(warm->listener, 1) < 0) return -1;
  warm->shown = 1;
  return rename_socket(warm, '.', 'r');
}

static void let_in(struct warm *warm) {
  int client = accept4(warm->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  if (!peer_is_same_user(client)) {
    close(client);
    return;
  }
  warm->client = client;
  drop(&warm->listener); /* the name stays: by it the keeper tells a claim that came from one that never will */
}

/* ---- frames out ---- */

/* One frame at a time: the caller asks is_free first. */
static void queue(struct warm *warm, uint32_t kind, const void *bytes, size_t size) {
  struct frame header = {kind, (uint32_t)size};
  char *frame = malloc(sizeof header + size);
  if (!frame) return drop(&warm->client); /* the client learns that it was left alone */
  memcpy(frame, &header, sizeof header);
  if (size) memcpy(frame + sizeof header, bytes, size);
  warm->queued = frame;
  warm->queued_size = sizeof header + size;
  warm->queued_sent = 0;
}

static int is_free(const struct warm *warm) { return !warm->queued; }

static void flush(struct warm *warm) {
  while (warm->queued && warm->client >= 0) {
    ssize_t sent = send(warm->client, warm->queued + warm->queued_sent, warm->queued_size - warm->queued_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) drop(&warm->client);
    else warm->queued_sent += (size_t)sent;
    if (warm->queued_sent < warm->queued_size && warm->client >= 0) continue;
    free(warm->queued);
    warm->queued = NULL;
  }
  /* A client that has nothing else to do waits for the end alone, and sleeps through every other frame. */
  if (warm->is_over && !warm->queued && warm->client >= 0) shutdown(warm->client, SHUT_WR);
}

static void send_frame(struct warm *warm, uint32_t kind, const void *bytes, size_t size) {
  if (warm->client < 0) return;
  queue(warm, kind, bytes, size);
  flush(warm);
}

static void send_last_frame(struct warm *warm, uint32_t kind, const void *bytes, size_t size) {
  warm->is_over = 1;
  send_frame(warm, kind, bytes, size);
}

/* ---- frames in ---- */

static void take_descriptors(struct warm *warm, struct msghdr *message) {
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      if (warm->given_count < FRAME_DESCRIPTORS_MAX) warm->given[warm->given_count++] = fd;
      else close(fd);
    }
  }
}

/* Reads what is there of the frame at hand. 1 = it is whole, 0 = more must come, -1 = the client is gone or talks nonsense. */
static int read_frame(struct warm *warm) {
  static const uint32_t longest[] = {
      [FRAME_CALLER] = sizeof(struct inherited), [FRAME_RUN] = FRAME_RUN_MAX, [FRAME_SIGNAL] = sizeof(int32_t), [FRAME_STOP] = sizeof(int32_t), [FRAME_INPUT] = FRAME_DATA_MAX,
      [FRAME_GUARDS] = LAUNCHFILE_MAX, [FRAME_SAME] = MAC_TEXT - 1, [FRAME_PLAN] = STREAM_MODE_MAX + LAUNCHFILE_MAX};
  for (;;) {
    size_t begun = sizeof warm->header;
    int in_header = warm->have < begun;
    if (!in_header && warm->have == begun + warm->header.size) return 1;
    struct iovec room = in_header ? (struct iovec){(char *)&warm->header + warm->have, begun - warm->have}
                                  : (struct iovec){warm->body + warm->have - begun, begun + warm->header.size - warm->have};
    union {
      struct cmsghdr header;
      char room[CMSG_SPACE(sizeof(int) * FRAME_DESCRIPTORS_MAX)];
    } control;
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(warm->client, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) return -1;
    take_descriptors(warm, &message);
    if (message.msg_flags & MSG_CTRUNC) return -1;
    warm->have += (size_t)got;
    if (!in_header || warm->have < begun) continue;
    if (warm->header.kind >= sizeof longest / sizeof *longest || warm->header.size > longest[warm->header.kind]) return -1;
    free(warm->body);
    warm->body = malloc(warm->header.size + 1);
    if (!warm->body) return -1;
  }
}

/* A client without descriptors is the library: the keeper is its own child and has inherited the same. */
static int is_acceptable(const struct warm *warm) {
  if (warm->is_another) return 0;
  /* A cold run is its client's own child, and has no gate: a client that sends one must not believe that it holds. */
  if (warm->directory < 0) return warm->given_count == 0 || warm->given_count == 3;
  int is_known = warm->given_count == 0 || (warm->given_count >= 3 && warm->same_inherited);
  return is_known && !mounts_are_stale(&warm->mounts);
}

static enum warm_event on_caller(struct warm *warm) {
  warm->same_inherited = warm->body && warm->header.size == sizeof warm->inherited && memcmp(warm->body, &warm->inherited, sizeof warm->inherited) == 0;
  return WARM_NOTHING;
}

/* Most clients come with the very plan that the sandbox was built from, which has been read already. */
static int is_own_plan(const struct warm *warm) {
  const struct launchfile *own = warm->own;
  return own && warm->body && warm->header.size == own->size && memcmp(warm->body, own->bytes, own->size) == 0;
}

static enum warm_event on_guards(struct warm *warm) {
  const char *problem;
  if (warm->plan.bytes) return WARM_GONE; /* one list for each command: every further one would take more memory */
  if (is_own_plan(warm)) return warm->plan = *warm->own, WARM_NOTHING;
  if (launchfile_check(warm->body, warm->header.size, &warm->plan, &problem) < 0) return WARM_GONE;
  warm->body = NULL; /* its words are the guards' */
  return WARM_NOTHING;
}

static enum warm_event on_same(struct warm *warm) {
  if (warm->plan.bytes) return WARM_GONE;
  if (warm->own && cached_has_seal(warm->own, warm->body, warm->header.size)) warm->plan = *warm->own;
  else warm->is_another = 1;
  return WARM_NOTHING;
}

static enum warm_event on_run(struct warm *warm) {
  warm->has_command = 1;
  if (is_acceptable(warm)) return WARM_RUN;
  warm_refuse(warm);
  return WARM_GONE;
}

/* Returns 0 when the pipe takes no more for now. */
static int feed(struct warm *warm) {
  while (warm->input >= 0 && warm->kept_sent < warm->kept_size) {
    ssize_t sent = write(warm->input, warm->kept + warm->kept_sent, warm->kept_size - warm->kept_sent);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return 0;
    if (sent < 0) drop(&warm->input); /* the command reads no more, as it may */
    else warm->kept_sent += (size_t)sent;
  }
  if (warm->kept) warm->want_pending = 1;
  free(warm->kept);
  warm->kept = NULL;
  return 1;
}

static enum warm_event on_input(struct warm *warm) {
  if (warm->kept) return WARM_GONE; /* not asked for */
  if (warm->header.size == 0) drop(&warm->input);
  if (warm->input < 0) return WARM_NOTHING;
  warm->kept = warm->body;
  warm->kept_size = warm->header.size;
  warm->kept_sent = 0;
  warm->body = NULL;
  feed(warm);
  return WARM_NOTHING;
}

static enum warm_event on_frame(struct warm *warm) {
  warm->have = 0;
  if (warm->wants_plan) return warm->header.kind == FRAME_PLAN ? WARM_PLAN : WARM_GONE;
  int has_signal = warm->taken && warm->header.size == sizeof(int32_t);
  if (!warm->has_command && warm->header.kind == FRAME_CALLER) return on_caller(warm);
  if (!warm->has_command && warm->header.kind == FRAME_GUARDS) return on_guards(warm);
  if (!warm->has_command && warm->header.kind == FRAME_SAME) return on_same(warm);
  if (!warm->has_command && warm->header.kind == FRAME_RUN) return on_run(warm);
  if (!warm->has_command) return WARM_GONE;
  if (has_signal && warm->header.kind == FRAME_SIGNAL) return WARM_SIGNAL;
  if (has_signal && warm->header.kind == FRAME_STOP) return WARM_STOP;
  if (warm->taken && warm->header.kind == FRAME_INPUT) return on_input(warm);
  return WARM_GONE;
}

/* ---- the poll loop ---- */

void warm_watch(const struct warm *warm, struct pollfd watched[WARM_POLLS]) {
  int is_idle = warm->directory >= 0 && !warm->taken;
  short client = POLLIN | (warm->queued ? POLLOUT : 0);
  watched[0] = (struct pollfd){is_idle ? warm->mounts.list : -1, POLLPRI, 0};
  /* Before it is shown it does not listen, and would report a hang-up again and again. */
  watched[1] = (struct pollfd){warm->shown ? warm->listener : -1, POLLIN, 0};
  /* A client that has the status only has to close, and that need not wake us. */
  watched[2] = (struct pollfd){warm->is_over && !warm->queued ? -1 : warm->client, client, 0};
  watched[3] = (struct pollfd){warm->kept ? warm->input : -1, POLLOUT, 0};
  /* A client that does not read makes the command wait, not us. */
  for (int i = 0; i < 2; i++) watched[4 + i] = (struct pollfd){is_free(warm) ? warm->output[i] : -1, POLLIN, 0};
}

static void relay_output(struct warm *warm, int which) {
  char bytes[FRAME_DATA_MAX];
  if (!is_free(warm) || warm->output[which] < 0) return;
  ssize_t got = read(warm->output[which], bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(&warm->output[which]);
  send_frame(warm, which == 0 ? FRAME_OUTPUT : FRAME_ERRORS, bytes, (size_t)got);
}

/* A client has come, and not yet its command. */
static int is_awaited(const struct warm *warm) { return warm->directory >= 0 && warm->client >= 0 && !warm->has_command; }

int warm_is_announced(const struct warm *warm) { return is_awaited(warm) && warm->same_inherited; }

int warm_has_guards(const struct warm *warm) { return is_awaited(warm) && warm->plan.bytes && warm->plan.bytes != warm->own->bytes; }

enum warm_event warm_read(struct warm *warm) {
  int got = read_frame(warm);
  while (got > 0) {
    enum warm_event event = on_frame(warm);
    if (event != WARM_NOTHING) return event;
    got = read_frame(warm);
  }
  if (got == 0) return WARM_NOTHING;
  drop(&warm->client);
  return WARM_GONE;
}

enum warm_event warm_relay(struct warm *warm, const struct pollfd watched[WARM_POLLS]) {
  if (watched[0].revents && !warm->taken && mounts_have_changed(&warm->mounts)) return WARM_GONE;
  if (watched[1].revents) let_in(warm);
  if (watched[3].revents) feed(warm);
  if (watched[2].revents & POLLOUT) flush(warm);
  if (warm->want_pending && !warm->is_over && is_free(warm)) warm->want_pending = 0, send_frame(warm, FRAME_WANT, NULL, 0);
  for (int i = 0; i < 2; i++)
    if (watched[4 + i].revents) relay_output(warm, i);
  /* A client that came with its connection has often sent everything already. */
  return warm->client >= 0 && (watched[1].revents || (watched[2].revents & ~POLLOUT)) ? warm_read(warm) : WARM_NOTHING;
}

/* ---- the run ---- */

char *warm_command(struct warm *warm, size_t *size) {
  char *block = warm->body;
  *size = warm->header.size;
  warm->body = NULL;
  return block;
}

static int make_pipe(int *ours, int *theirs, int ours_is_read) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  *ours = ends[!ours_is_read];
  *theirs = ends[ours_is_read];
  /* Inside, the command has another uid than the pipe's maker, and must be able to open its end again, as /dev/stdout for instance. */
  if (fchmod(*theirs, ours_is_read ? 0622 : 0644) < 0) return -1;
  return fcntl(*ours, F_SETFL, O_NONBLOCK); /* of our end alone: each end has its own flags */
}

static int frame_input(struct warm *warm, int streams[3]) { return make_pipe(&warm->input, &streams[0], 0); }

static int frame_output(struct warm *warm, int streams[3]) {
  return make_pipe(&warm->output[0], &streams[1], 1) < 0 || make_pipe(&warm->output[1], &streams[2], 1) < 0 ? -1 : 0;
}

int warm_take_given(struct warm *warm, int streams[3]) {
  if (warm->given_count < 3) return 0;
  memcpy(streams, warm->given, sizeof(int) * 3);
  return 1;
}

int warm_streams(struct warm *warm, int streams[3]) {
  if (warm_take_given(warm, streams)) return 0;
  return frame_input(warm, streams) < 0 || frame_output(warm, streams) < 0 ? -1 : 0;
}

int warm_gate(const struct warm *warm) { return warm->given[3]; }

void warm_adopt(struct warm *warm, int client) {
  warm->client = client;
  warm->taken = 1;
}

void warm_adopt_with_plan(struct warm *warm, int client) {
  warm_adopt(warm, client);
  warm->wants_plan = 1;
}

const char *warm_take_plan(struct warm *warm, struct launchfile *file, const char **problem) {
  char *mode = warm->body, *nul = memchr(mode, 0, warm->header.size < STREAM_MODE_MAX ? warm->header.size : STREAM_MODE_MAX);
  warm->body = NULL; /* never freed: the plan's words are in it */
  warm->wants_plan = 0;
  *problem = "streams";
  if (!nul) return NULL;
  return launchfile_check(nul + 1, warm->header.size - (size_t)(nul + 1 - mode), file, problem) < 0 ? NULL : mode;
}

int warm_make_streams(struct warm *warm, int with_input, int streams[3]) {
  return (with_input && frame_input(warm, streams) < 0) || frame_output(warm, streams) < 0 ? -1 : 0;
}

int warm_accept(struct warm *warm) {
  warm->taken = 1;
  send_frame(warm, FRAME_TAKEN, NULL, 0);
  return warm->client < 0 ? -1 : 0;
}

int warm_signal(const struct warm *warm) {
  int32_t signal;
  memcpy(&signal, warm->body, sizeof signal);
  return signal;
}

int warm_is_drained(const struct warm *warm) {
  return warm->client < 0 || (is_free(warm) && warm->output[0] < 0 && warm->output[1] < 0);
}

int warm_is_busy(const struct warm *warm) {
  return warm->client >= 0 && (warm->queued || warm->output[0] >= 0 || warm->output[1] >= 0);
}

void warm_reply(struct warm *warm, int exit_code, const char *json, size_t size) {
  uint32_t code = (uint32_t)exit_code;
  char *body = malloc(sizeof code + size);
  if (!body) return drop(&warm->client);
  memcpy(body, &code, sizeof code);
  memcpy(body + sizeof code, json, size);
  send_last_frame(warm, FRAME_STATUS, body, sizeof code + size);
  free(body);
}

void warm_refuse(struct warm *warm) { send_last_frame(warm, FRAME_REFUSED, NULL, 0); }

#define LINGER_MS 1000

void warm_linger(struct warm *warm) {
  char nothing[4096];
  struct pollfd client = {warm->client, POLLIN, 0};
  while (warm->client >= 0 && poll(&client, 1, LINGER_MS) > 0) {
    ssize_t got = recv(warm->client, nothing, sizeof nothing, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

void warm_close(struct warm *warm) {
  if (warm->directory < 0) return;
  remove_socket(warm);
  drop(&warm->client);
  drop(&warm->listener);
  drop(&warm->directory);
}
