#include "runner/line.h"

#include "lib/files.h"
#include "lib/seal.h"
#include "lib/launch-cache.h"
#include "lib/fd-message.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define STREAM_MODE_MAX 8 /* bytes of a word about the streams, with its NUL */

/* ---- the socket ---- */

static int high(int fd) { return fd_above(fd, 16); }

int line_prepare(struct line *line, const char *directory, const char *id, const struct launchfile *file, const char *init) {
  copy_text(line->name, sizeof line->name, id);
  struct entry check;
  line->own = file;
  line->seal = launchfile_find(file, V_CHECK, &check) ? check.word[0] : NULL;
  line->is_blank = launchfile_has_slots(file);
  line->is_warm = 1;
  line->mounts.list.fd = high(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (line->mounts.list.fd < 0 || mounts_watch(&line->mounts, file, init) < 0) return -1;
  if (!directory) return 0;
  line->directory = high(records_open(directory));
  line->listener.fd = high(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (line->directory < 0 || line->listener.fd < 0 || inherited_read(&line->inherited) < 0) return -1;
  char hidden_name[RUN_ID_MAX + 3];
  snprintf(hidden_name, sizeof hidden_name, ".%s", line->name);
  struct sockaddr_un hidden = socket_address(line->directory, hidden_name);
  return bind(line->listener.fd, (struct sockaddr *)&hidden, sizeof hidden);
}

static int rename_socket(const struct line *line, char from, char to) {
  char old[RUN_ID_MAX + 3], new[RUN_ID_MAX + 3];
  snprintf(old, sizeof old, "%c%s", from, line->name);
  snprintf(new, sizeof new, "%c%s", to, line->name);
  return renameat(line->directory, old, line->directory, new);
}

static void remove_socket(const struct line *line) {
  char name[RUN_ID_MAX + 3];
  for (const char *first = ".rc"; *first; first++) {
    snprintf(name, sizeof name, "%c%s", *first, line->name);
    unlinkat(line->directory, name, 0);
  }
}

static void let_in(struct line *line) {
  int client = accept4(line->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  if (!peer_is_same_user(client)) {
    close(client);
    return;
  }
  line->client.fd = client;
  loop_close(&line->listener); /* the name stays: by it the keeper tells a claim that came from one that never will */
}

/* ---- frames out ---- */

/* One frame at a time: the caller asks is_free first. */
static void queue(struct line *line, uint32_t kind, const void *bytes, size_t size) {
  struct frame header = {kind, (uint32_t)size};
  char *frame = malloc(sizeof header + size);
  if (!frame) return loop_close(&line->client); /* the client learns that it was left alone */
  memcpy(frame, &header, sizeof header);
  if (size) memcpy(frame + sizeof header, bytes, size);
  line->queued = frame;
  line->queued_size = sizeof header + size;
  line->queued_sent = 0;
}

static int is_free(const struct line *line) { return !line->queued; }

static void flush(struct line *line) {
  while (line->queued && line->client.fd >= 0) {
    ssize_t sent = send(line->client.fd, line->queued + line->queued_sent, line->queued_size - line->queued_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) loop_close(&line->client);
    else line->queued_sent += (size_t)sent;
    if (line->queued_sent < line->queued_size && line->client.fd >= 0) continue;
    free(line->queued);
    line->queued = NULL;
  }
  /* A client that has nothing else to do waits for the end alone, and sleeps through every other frame. */
  if (line->is_over && !line->queued && line->client.fd >= 0) shutdown(line->client.fd, SHUT_WR);
}

static void send_frame(struct line *line, uint32_t kind, const void *bytes, size_t size) {
  if (line->client.fd < 0) return;
  queue(line, kind, bytes, size);
  flush(line);
}

int line_show(struct line *line) {
  line->shown = 1;
  if (line->directory < 0) return send_frame(line, FRAME_READY, NULL, 0), line->client.fd < 0 ? -1 : 0;
  return listen(line->listener.fd, 1) < 0 ? -1 : rename_socket(line, '.', 'r');
}

static void send_last_frame(struct line *line, uint32_t kind, const void *bytes, size_t size) {
  line->is_over = 1;
  send_frame(line, kind, bytes, size);
}

/* ---- frames in ---- */

static void take_descriptors(struct line *line, struct msghdr *message) {
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      if (line->given_count < FRAME_DESCRIPTORS_MAX) line->given[line->given_count++] = fd;
      else close(fd);
    }
  }
}

/* Reads what is there of the frame at hand. 1 = it is whole, 0 = more must come, -1 = the client is gone or talks nonsense. */
static int read_frame(struct line *line) {
  static const uint32_t longest[] = {
      [FRAME_CALLER] = sizeof(struct inherited), [FRAME_RUN] = FRAME_RUN_MAX, [FRAME_SIGNAL] = sizeof(int32_t), [FRAME_STOP] = sizeof(int32_t), [FRAME_INPUT] = FRAME_DATA_MAX,
      [FRAME_GUARDS] = LAUNCHFILE_MAX, [FRAME_SAME] = MAC_TEXT - 1, [FRAME_PLACES] = PLACES_BYTES_MAX, [FRAME_LOOKED] = sizeof(uint64_t), [FRAME_PLAN] = STREAM_MODE_MAX + LAUNCHFILE_MAX};
  for (;;) {
    size_t begun = sizeof line->header;
    int in_header = line->have < begun;
    if (!in_header && line->have == begun + line->header.size) return 1;
    struct iovec room = in_header ? (struct iovec){(char *)&line->header + line->have, begun - line->have}
                                  : (struct iovec){line->body + line->have - begun, begun + line->header.size - line->have};
    union {
      struct cmsghdr header;
      char room[CMSG_SPACE(sizeof(int) * FRAME_DESCRIPTORS_MAX)];
    } control;
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(line->client.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) return -1;
    take_descriptors(line, &message);
    if (message.msg_flags & MSG_CTRUNC) return -1;
    line->have += (size_t)got;
    if (!in_header || line->have < begun) continue;
    if (line->header.kind >= sizeof longest / sizeof *longest || line->header.size > longest[line->header.kind]) return -1;
    free(line->body);
    line->body = malloc(line->header.size + 1);
    if (!line->body) return -1;
  }
}

/* A client without descriptors is the library, whose sandboxes have inherited the same. */
static int is_acceptable(struct line *line) {
  if (line->is_another) return 0;
  /* A cold run is its client's own child, and has no gate: a client that sends one must not believe that it holds. */
  if (!line->is_warm) return line->given_count == 0 || line->given_count == 3;
  if (line->is_blank != line->has_places) return 0;
  int is_known = line->given_count == 0 || (line->given_count >= 3 && line->same_inherited);
  return is_known && !mounts_are_stale(&line->mounts);
}

static enum line_event on_caller(struct line *line) {
  line->same_inherited = line->body && line->header.size == sizeof line->inherited && memcmp(line->body, &line->inherited, sizeof line->inherited) == 0;
  return LINE_NOTHING;
}

/* Most clients come with the very plan that the sandbox was built from, which has been read already. */
static int is_own_plan(const struct line *line) {
  const struct launchfile *own = line->own;
  return own && line->body && line->header.size == own->size && memcmp(line->body, own->bytes, own->size) == 0;
}

static enum line_event on_guards(struct line *line) {
  const char *problem;
  if (line->plan.bytes) return LINE_GONE; /* one list for each command: every further one would take more memory */
  if (is_own_plan(line)) return line->plan = *line->own, LINE_NOTHING;
  if (launchfile_check(line->body, line->header.size, &line->plan, &problem) < 0) return LINE_GONE;
  line->body = NULL; /* its words are the guards' */
  return LINE_NOTHING;
}

static enum line_event on_places(struct line *line) {
  if (!line->is_blank || line->has_places) return LINE_GONE;
  line->has_places = 1;
  return LINE_PLACES;
}

static int has_seal(const struct line *line) {
  return line->seal && line->body && strlen(line->seal) == line->header.size && memcmp(line->seal, line->body, line->header.size) == 0;
}

static enum line_event on_same(struct line *line) {
  if (line->plan.bytes) return LINE_GONE;
  line->is_same = line->own && has_seal(line);
  if (line->is_same) line->plan = *line->own;
  else line->is_another = 1;
  return LINE_NOTHING;
}

static enum line_event on_looked(struct line *line) {
  if (line->body && line->header.size == sizeof line->looked_ns) memcpy(&line->looked_ns, line->body, sizeof line->looked_ns);
  return LINE_NOTHING;
}

static enum line_event on_run(struct line *line) {
  line->has_command = 1;
  if (is_acceptable(line)) return LINE_RUN;
  line_refuse(line);
  return LINE_GONE;
}

/* Returns 0 when the pipe takes no more for now. */
static int feed(struct line *line) {
  while (line->input.fd >= 0 && line->kept_sent < line->kept_size) {
    ssize_t sent = write(line->input.fd, line->kept + line->kept_sent, line->kept_size - line->kept_sent);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return 0;
    if (sent < 0) loop_close(&line->input); /* the command reads no more, as it may */
    else line->kept_sent += (size_t)sent;
  }
  if (line->kept) line->want_pending = 1;
  free(line->kept);
  line->kept = NULL;
  return 1;
}

static enum line_event on_input(struct line *line) {
  if (line->kept) return LINE_GONE; /* not asked for */
  if (line->header.size == 0) loop_close(&line->input);
  if (line->input.fd < 0) return LINE_NOTHING;
  line->kept = line->body;
  line->kept_size = line->header.size;
  line->kept_sent = 0;
  line->body = NULL;
  feed(line);
  return LINE_NOTHING;
}

static enum line_event on_frame(struct line *line) {
  line->have = 0;
  if (line->wants_plan) return line->header.kind == FRAME_PLAN ? LINE_PLAN : LINE_GONE;
  int has_signal = line->taken && line->header.size == sizeof(int32_t);
  if (!line->has_command && line->header.kind == FRAME_CALLER) return on_caller(line);
  if (!line->has_command && line->header.kind == FRAME_GUARDS) return on_guards(line);
  if (!line->has_command && line->header.kind == FRAME_SAME) return on_same(line);
  if (!line->has_command && line->header.kind == FRAME_LOOKED) return on_looked(line);
  if (!line->has_command && line->header.kind == FRAME_PLACES) return on_places(line);
  if (!line->has_command && line->header.kind == FRAME_RUN) return on_run(line);
  if (!line->has_command) return LINE_GONE;
  if (has_signal && line->header.kind == FRAME_SIGNAL) return LINE_SIGNAL;
  if (has_signal && line->header.kind == FRAME_STOP) return LINE_STOP;
  if (line->taken && line->header.kind == FRAME_INPUT) return on_input(line);
  return LINE_GONE;
}

/* ---- waits and turns ---- */

/* The command of a blank sandbox has come, and its directories have not: what its client sends behind it is for the command. Or it is not ready. */
static int is_held(const struct line *line) { return line->is_warm && (line->has_command || !line->shown) && !line->taken && !line->is_over; }

void line_watch(struct line *line) {
  loop_watch(&line->mounts.list, line->taken ? 0 : EPOLLPRI);
  /* Before it is shown it does not listen, and would report a hang-up again and again. */
  loop_watch(&line->listener, line->shown ? EPOLLIN : 0);
  /* A client that has the status only has to close, and that need not wake us. */
  loop_watch(&line->client, line->is_left ? 0 : line->queued ? EPOLLIN | EPOLLOUT : line->is_over ? 0 : is_held(line) ? EPOLLRDHUP : EPOLLIN);
  loop_watch(&line->input, line->kept ? EPOLLOUT : 0);
  /* A client that does not read makes the command wait, not us. */
  for (int i = 0; i < 2; i++) loop_watch(&line->output[i], is_free(line) ? EPOLLIN : 0);
}

static void relay_output(struct line *line, int which) {
  char bytes[FRAME_DATA_MAX];
  if (!is_free(line) || line->output[which].fd < 0) return;
  ssize_t got = read(line->output[which].fd, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return loop_close(&line->output[which]);
  send_frame(line, which == 0 ? FRAME_OUTPUT : FRAME_ERRORS, bytes, (size_t)got);
}

/* A client has come, and not yet its command. */
static int is_awaited(const struct line *line) { return line->is_warm && line->client.fd >= 0 && !line->has_command; }

int line_is_announced(const struct line *line) { return is_awaited(line) && line->same_inherited; }

int line_places(struct line *line, struct places *places) {
  if (places_read(places, line->body, line->header.size) < 0) return -1;
  struct entry slots;
  uint64_t count;
  return launchfile_find(line->own, V_SLOTS, &slots) && parse_number(slots.word[0], 1 + PLACE_ZONES_MAX, &count) == 0 && count == places->count ? 0 : -1;
}

uint64_t line_looked(const struct line *line) { return line->is_same ? line->looked_ns : 0; }

int line_has_guards(const struct line *line) { return is_awaited(line) && line->plan.bytes && line->plan.bytes != line->own->bytes; }

/* The end of this process closes the connection of a sandbox that waits: its client sees by it that nothing is left. */
static enum line_event leave(struct line *line) {
  line->is_left = line->is_warm && !line->taken;
  if (!line->is_left) loop_close(&line->client);
  return LINE_GONE;
}

enum line_event line_read(struct line *line) {
  int got = read_frame(line);
  while (got > 0) {
    enum line_event event = on_frame(line);
    if (event != LINE_NOTHING) return event;
    got = read_frame(line);
  }
  return got == 0 ? LINE_NOTHING : leave(line);
}

enum line_event line_relay(struct line *line) {
  uint32_t came = line->listener.got;
  int had_client = line->client.fd >= 0;
  if (is_held(line) && line->client.got) return leave(line);
  if (line->mounts.list.got && !line->taken && mounts_have_changed(&line->mounts)) return LINE_GONE;
  if (came) let_in(line);
  if (line->input.got) feed(line);
  if (line->client.got & EPOLLOUT) flush(line);
  if (line->want_pending && !line->is_over && is_free(line)) line->want_pending = 0, send_frame(line, FRAME_WANT, NULL, 0);
  for (int i = 0; i < 2; i++)
    if (line->output[i].got) relay_output(line, i);
  if (had_client && line->client.fd < 0) return LINE_GONE; /* seen by what could not be sent: no event comes from it any more */
  /* A client that came with its connection has often sent everything already. */
  return line->client.fd >= 0 && (came || (line->client.got & ~(uint32_t)EPOLLOUT)) ? line_read(line) : LINE_NOTHING;
}

/* ---- the run ---- */

char *line_command(struct line *line, size_t *size) {
  char *block = line->body;
  *size = line->header.size;
  line->body = NULL;
  return block;
}

static int make_pipe(struct source *ours, int *theirs, int ours_is_read) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  ours->fd = ends[!ours_is_read];
  *theirs = ends[ours_is_read];
  /* Inside, the command has another uid than the pipe's maker, and must be able to open its end again, as /dev/stdout for instance. */
  if (fchmod(*theirs, ours_is_read ? 0622 : 0644) < 0) return -1;
  return fcntl(ours->fd, F_SETFL, O_NONBLOCK); /* of our end alone: each end has its own flags */
}

static int frame_input(struct line *line, int streams[3]) { return make_pipe(&line->input, &streams[0], 0); }

static int frame_output(struct line *line, int streams[3]) {
  return make_pipe(&line->output[0], &streams[1], 1) < 0 || make_pipe(&line->output[1], &streams[2], 1) < 0 ? -1 : 0;
}

int line_take_given(struct line *line, int streams[3]) {
  if (line->given_count < 3) return 0;
  memcpy(streams, line->given, sizeof(int) * 3);
  return 1;
}

int line_streams(struct line *line, int streams[3]) {
  if (line_take_given(line, streams)) return 0;
  return frame_input(line, streams) < 0 || frame_output(line, streams) < 0 ? -1 : 0;
}

int line_gate(const struct line *line) { return line->given[3]; }

void line_adopt(struct line *line, int client) {
  line->client.fd = client;
  line->taken = 1;
}

void line_await_command(struct line *line) { line->taken = 0; }

void line_adopt_with_plan(struct line *line, int client) {
  line_adopt(line, client);
  line->wants_plan = 1;
}

const char *line_take_plan(struct line *line, struct launchfile *file, const char **problem) {
  char *mode = line->body, *nul = memchr(mode, 0, line->header.size < STREAM_MODE_MAX ? line->header.size : STREAM_MODE_MAX);
  line->body = NULL; /* never freed: the plan's words are in it */
  line->wants_plan = 0;
  *problem = "streams";
  if (!nul) return NULL;
  return launchfile_check(nul + 1, line->header.size - (size_t)(nul + 1 - mode), file, problem) < 0 ? NULL : mode;
}

int line_make_streams(struct line *line, int with_input, int streams[3]) {
  return (with_input && frame_input(line, streams) < 0) || frame_output(line, streams) < 0 ? -1 : 0;
}

int line_accept(struct line *line) {
  line->taken = 1;
  send_frame(line, FRAME_TAKEN, NULL, 0);
  return line->client.fd < 0 ? -1 : 0;
}

int line_signal(const struct line *line) {
  int32_t signal;
  memcpy(&signal, line->body, sizeof signal);
  return signal;
}

int line_is_drained(const struct line *line) {
  return line->client.fd < 0 || (is_free(line) && line->output[0].fd < 0 && line->output[1].fd < 0);
}

int line_is_busy(const struct line *line) {
  return line->client.fd >= 0 && (line->queued || line->output[0].fd >= 0 || line->output[1].fd >= 0);
}

void line_reply(struct line *line, int exit_code, const char *json, size_t size) {
  uint32_t code = (uint32_t)exit_code;
  char *body = malloc(sizeof code + size);
  if (!body) return loop_close(&line->client);
  memcpy(body, &code, sizeof code);
  memcpy(body + sizeof code, json, size);
  send_last_frame(line, FRAME_STATUS, body, sizeof code + size);
  free(body);
}

void line_refuse(struct line *line) { send_last_frame(line, FRAME_REFUSED, NULL, 0); }

#define LINGER_MS 1000

void line_linger(struct line *line) {
  char nothing[4096];
  struct pollfd client = {line->client.fd, POLLIN, 0};
  while (line->client.fd >= 0 && poll(&client, 1, LINGER_MS) > 0) {
    ssize_t got = recv(line->client.fd, nothing, sizeof nothing, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

void line_close(struct line *line) {
  if (line->directory < 0) return;
  remove_socket(line);
  loop_close(&line->client);
  loop_close(&line->listener);
  close(line->directory);
  line->directory = -1;
}
