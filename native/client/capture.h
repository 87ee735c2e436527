/*
 * The two output streams of a run with a JSON result: read as they come, the head and the tail of each kept.
 *
 * Theory of operation. The command writes into two pipes. Our copies of its ends stay open until the run is over, so a pipe
 * that can be read holds bytes, and the end of a run is the end of launch, never of its output. Each stream is kept in one
 * block of at most the cap: first the head, then the tail, which is written over from its start again and again. So memory stays
 * flat whatever a command prints, and what fits is one piece. src/backends/capture.ts keeps the same bytes.
 */
#pragma once

#include "lib/launch-file.h"

#include <poll.h>

/* Entries that capture_watch fills. */
#define CAPTURE_POLLS 2

struct stream {
  int ours, theirs; /* ends of the pipe, -1 = closed */
  char *bytes;
  size_t room;       /* of the block, grows up to head + tail */
  size_t head, tail; /* most that is kept of each */
  size_t seen;       /* all bytes so far */
};

struct capture {
  int is_on; /* 0 = the command has the caller's own streams */
  struct stream stream[2];
};

/* As the V_CAPTURE record of a checked file says. 0, or -1: the record is damaged, or there are no pipes. */
int capture_open(struct capture *capture, const struct launchfile *file);

/* The command's descriptors 0 to 2. */
void capture_streams(const struct capture *capture, int streams[3]);

void capture_watch(const struct capture *capture, struct pollfd watched[CAPTURE_POLLS]);
void capture_read(struct capture *capture, const struct pollfd watched[CAPTURE_POLLS]);

/*
 * After the end of the run: reads what is left in the pipes, and gives up on a process that holds one open. What was kept lies in its order
 * then: the head, and right behind it the tail.
 */
void capture_finish(struct capture *capture);

/* Is everything kept that was written? */
int stream_is_whole(const struct stream *stream);

/* Bytes that were kept, after the end, and how many of them are the head. */
size_t stream_kept(const struct stream *stream);
size_t stream_head(const struct stream *stream);

/* Puts the kept output into sealed files that a successor inherits, and describes them in one line of JSON without a line feed; an
 * empty line when nothing was captured. 0, or -1 without memory or room. */
int capture_hand_over(const struct capture *capture, char *line, size_t room);
