#include "client/capture.h"

#include "lib/clock.h"
#include "lib/files.h"
#include "lib/sealed-memory.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The same as in src/backends/child-process.ts: milliseconds of silence, and at most, that a process gets that holds a pipe open. */
#define DRAIN_MS 100
#define DRAIN_MOST_MS 1000

/* Most commands print less. */
#define FIRST_ROOM ((size_t)16 << 10)
#define WASTE_ROOM ((size_t)64 << 10)
/* Above our own pipes, which posix_spawn puts in the command's place. */
#define FD_HIGH 20

/* ---- the pipes ---- */

static void drop(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* Only our end does not wait: each end of a pipe has separate flags. Theirs may be opened again, as /dev/stdout for instance, by
 * whatever uid the command has inside. */
static int open_stream(struct stream *stream, size_t cap) {
  int ends[2];
  *stream = (struct stream){.ours = -1, .theirs = -1, .head = cap == SIZE_MAX ? cap : cap - cap / 2, .tail = cap == SIZE_MAX ? 0 : cap / 2};
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  stream->ours = fd_above(ends[0], FD_HIGH);
  stream->theirs = fd_above(ends[1], FD_HIGH);
  if (stream->ours < 0 || stream->theirs < 0 || fchmod(stream->theirs, 0622) < 0) return -1;
  return fcntl(stream->ours, F_SETFL, O_NONBLOCK);
}

static int read_cap(const char *word, size_t *cap) {
  uint64_t number = SIZE_MAX;
  if (strcmp(word, "all") != 0 && parse_number(word, SIZE_MAX / 2, &number) < 0) return -1;
  *cap = (size_t)number;
  return 0;
}

int capture_open(struct capture *capture, const struct launchfile *file) {
  struct entry entry;
  size_t cap;
  *capture = (struct capture){.is_on = launchfile_find(file, V_CAPTURE, &entry)};
  if (!capture->is_on) return 0;
  if (read_cap(entry.word[0], &cap) < 0) return -1;
  return open_stream(&capture->stream[0], cap) < 0 || open_stream(&capture->stream[1], cap) < 0 ? -1 : 0;
}

void capture_streams(const struct capture *capture, int streams[3]) {
  for (int fd = 0; fd < 3; fd++) streams[fd] = fd == 0 || !capture->is_on ? fd : capture->stream[fd - 1].theirs;
}

/* ---- what is kept ---- */

static size_t most_of(const struct stream *stream) { return stream->head + stream->tail; }

int stream_is_whole(const struct stream *stream) { return stream->seen <= most_of(stream); }

/* Where the next byte belongs: at the end, or over the oldest one of the tail. */
static size_t write_offset(const struct stream *stream) {
  if (stream->seen < most_of(stream)) return stream->seen;
  return stream->tail ? stream->head + (stream->seen - stream->head) % stream->tail : stream->head;
}

/* Where memory ends, the cap is what was had: the rest is counted as dropped, as beyond any other cap. */
static void grow(struct stream *stream) {
  size_t wanted = stream->room ? stream->room * 2 : FIRST_ROOM, most = most_of(stream);
  if (wanted > most) wanted = most;
  char *more = realloc(stream->bytes, wanted);
  if (!more) {
    stream->head = stream->room;
    stream->tail = 0;
    return;
  }
  stream->room = wanted;
  stream->bytes = more;
}

static void read_stream(struct stream *stream) {
  static char waste[WASTE_ROOM];
  if (write_offset(stream) == stream->room && stream->room < most_of(stream)) grow(stream);
  size_t at = write_offset(stream), left = stream->room - at;
  ssize_t got = read(stream->ours, left ? stream->bytes + at : waste, left ? left : sizeof waste);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(&stream->ours);
  stream->seen += (size_t)got;
}

/* ---- the poll loop ---- */

void capture_watch(const struct capture *capture, struct pollfd watched[CAPTURE_POLLS]) {
  for (int i = 0; i < CAPTURE_POLLS; i++) watched[i] = (struct pollfd){capture->is_on ? capture->stream[i].ours : -1, POLLIN, 0};
}

void capture_read(struct capture *capture, const struct pollfd watched[CAPTURE_POLLS]) {
  if (watched[0].revents) read_stream(&capture->stream[0]);
  if (watched[1].revents) read_stream(&capture->stream[1]);
}

static void read_rest(struct capture *capture) {
  struct pollfd watched[CAPTURE_POLLS];
  for (int i = 0; i < CAPTURE_POLLS; i++) drop(&capture->stream[i].theirs);
  for (uint64_t last = now_ns() + DRAIN_MOST_MS * 1000000ull; now_ns() < last;) {
    capture_watch(capture, watched);
    if (watched[0].fd < 0 && watched[1].fd < 0) return;
    int ready = poll(watched, CAPTURE_POLLS, DRAIN_MS);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    if (ready > 0) capture_read(capture, watched);
  }
}

static void reverse(char *from, char *end) {
  for (; from + 1 < end; from++) {
    char byte = *from;
    *from = *--end;
    *end = byte;
  }
}

/* Rotates the tail of a stream that was cut, so that its oldest byte comes first. */
static void line_up(struct stream *stream) {
  char *tail = stream->bytes + stream->head, *end = stream->bytes + most_of(stream), *oldest = stream->bytes + write_offset(stream);
  if (stream_is_whole(stream) || !stream->tail) return;
  reverse(tail, oldest), reverse(oldest, end), reverse(tail, end);
}

void capture_finish(struct capture *capture) {
  if (!capture->is_on) return;
  read_rest(capture);
  for (int i = 0; i < CAPTURE_POLLS; i++) line_up(&capture->stream[i]);
}

static size_t smaller(size_t one, size_t other) { return one < other ? one : other; }

size_t stream_kept(const struct stream *stream) { return smaller(stream->seen, most_of(stream)); }

size_t stream_head(const struct stream *stream) { return smaller(stream->seen, stream->head); }

/* ---- for a successor ---- */

static int sealed_file(const struct stream *stream) {
  int fd = memory_sealed(stream->bytes, stream_kept(stream), "output");
  return fd < 0 || fcntl(fd, F_SETFD, 0) == 0 ? fd : close_with(fd, -1);
}

int capture_hand_over(const struct capture *capture, char *line, size_t room) {
  int fd[CAPTURE_POLLS];
  line[0] = 0;
  if (!capture->is_on) return 0;
  for (int i = 0; i < CAPTURE_POLLS; i++)
    if ((fd[i] = sealed_file(&capture->stream[i])) < 0) return -1;
  const struct stream *out = &capture->stream[0], *err = &capture->stream[1];
  int size = snprintf(line, room, "{\"stdout\":{\"fd\":%d,\"head\":%zu,\"bytes\":%zu},\"stderr\":{\"fd\":%d,\"head\":%zu,\"bytes\":%zu}}", fd[0],
                      stream_head(out), out->seen, fd[1], stream_head(err), err->seen);
  return (size_t)size < room ? 0 : -1;
}
