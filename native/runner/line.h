/*
 * The line between a run and its caller, as launch has it: frames (lib/frames.h) with the command and its streams, and back.
 *
 * Theory of operation of a warm sandbox, which is complete but for its command. It is built like any other, up to init, which has given up
 * everything and asks for the command. One that a fork server's owner has asked for has its client already, and says FRAME_READY. Any other shows
 * a socket `r<id>` in the directory of its pool, which only this user can enter. A client claims it by renaming it to `c<id>`, so that no two have
 * the same, connects and sends the command. Launch checks its uid, that it has inherited the same limits and priority, that the host's mounts that the tree shows are
 * what they were when it was made, and that it serves the client's plan (runner/freshness.h), which it begins to look at while the
 * client still prepares the command, and finishes while the command's process gets ready; otherwise it refuses, and the client takes
 * the cold way. From FRAME_TAKEN on it is an ordinary run that ends with the client's connection. The sandbox serves one command and
 * ends.
 */
#pragma once

#include "lib/any-directory.h"
#include "lib/frames.h"
#include "lib/loop.h"
#include "runner/host-mounts.h"
#include "lib/run-record.h"
#include "lib/inherited.h"

#include <stddef.h>

/* Bytes for the keeper on launch's status descriptor, before the line of JSON, which does not contain them. */
#define WARM_IS_READY 1
#define WARM_IS_TAKEN 2

struct line {
  int is_warm;
  int directory; /* of the pool of a warm sandbox; -1 = its client is connected from the start */
  char name[RUN_ID_MAX + 2];
  struct inherited inherited;
  struct mounts mounts;
  struct source listener, client;
  int shown;   /* it is ready, and the socket listens */
  int is_left; /* its client has gone before the command was taken */

  struct frame header; /* of the frame that is being read */
  size_t have;         /* bytes of it, header included */
  char *body;
  int given[FRAME_DESCRIPTORS_MAX]; /* by the client, until they are handed over */
  int given_count;
  int same_inherited;
  const struct launchfile *own; /* what a warm sandbox is built from, with the directories of a blank one as soon as it has them */
  const char *seal;     /* of that plan before; NULL = it has none */
  int is_blank, has_places;
  struct launchfile plan; /* of the client, or its guards alone; none: size is 0 */
  int is_same, is_another; /* the client's plan, by its seal */
  uint64_t looked_ns; /* FRAME_LOOKED; 0 = none */
  int wants_plan; /* of a fork server's child: nothing is taken before it */
  int has_command;
  int taken; /* it will run: what the client sends is for it */
  int is_over; /* the last frame has been sent, or is queued */

  /* Framed streams: our ends of the command's pipes. */
  struct source input, output[2];
  char *kept; /* stdin that the pipe had no room for yet */
  size_t kept_size, kept_sent;
  int want_pending;
  char *queued; /* frames that the client had no room for yet */
  size_t queued_size, queued_sent;
};

enum line_event {
  LINE_NOTHING,
  LINE_PLAN,   /* the plan of a cold run: line_take_plan */
  LINE_PLACES, /* the directories of a blank sandbox: line_places */
  LINE_RUN,    /* a command has come: line_command, line_streams, then line_accept */
  LINE_SIGNAL, /* the client got a signal: line_signal */
  LINE_STOP,   /* the run is to end by this signal: line_signal */
  LINE_GONE,   /* no client will use this sandbox, or the one that did is gone */
};

#define LINE_NONE {.directory = -1, .mounts = MOUNTS_NONE, .listener = SOURCE_NONE, .client = SOURCE_NONE, .given = {-1, -1, -1, -1}, .input = SOURCE_NONE, .output = {SOURCE_NONE, SOURCE_NONE}}

/* Makes a warm sandbox, before the tree is made: watches the host's mounts and, with a directory, makes a hidden socket. 0, or -1 with errno. */
int line_prepare(struct line *line, const char *directory, const char *id, const struct launchfile *file, const char *init);
/* It is ready: shows the socket, or tells the client. */
int line_show(struct line *line);
/* For a cold run: this client brings the command and gets its frames. */
void line_adopt(struct line *line, int client);
/* The same for a client that brings the plan, too, and hears when its command is taken. */
void line_adopt_with_plan(struct line *line, int client);
/* That plan is for a warm sandbox: the command comes when it is ready. */
void line_await_command(struct line *line);
/* After LINE_PLAN: fills `file`, and returns how the streams go. NULL = the bytes are not a plan, and `problem` says why. */
const char *line_take_plan(struct line *line, struct launchfile *file, const char **problem);
/* And pipes for the command's streams, stdin too if that is wanted. `streams` become the command's ends, which are the
 * caller's. 0, or -1 with errno. */
int line_make_streams(struct line *line, int with_input, int streams[3]);

/* Before a wait, and after it. */
void line_watch(struct line *line);
enum line_event line_relay(struct line *line);

/* A client of a pool has said that it comes with a command, and it may be served. */
int line_is_announced(const struct line *line);
/* After LINE_PLACES: -1 = they are none that the sandbox could have. */
int line_places(struct line *line, struct places *places);
/* Since when the client has looked at what its plan was made from, which is that of the sandbox; 0 = it has not. */
uint64_t line_looked(const struct line *line);
/* Its guards have come before its command, and are not those of the sandbox. */
int line_has_guards(const struct line *line);
/* Reads the bytes that the client has sent so far, without waiting. */
enum line_event line_read(struct line *line);

/* After LINE_RUN. The bytes are the command block; the descriptors are the command's streams. All become the caller's. */
char *line_command(struct line *line, size_t *size);
int line_streams(struct line *line, int streams[3]);
/* The descriptors that came with the command, if any did; 1 = they did. */
int line_take_given(struct line *line, int streams[3]);
/* The client's gate, which becomes the caller's; -1 = none. */
int line_gate(const struct line *line);
/* Sends FRAME_TAKEN: from now on the command may have been started. -1 = the client is gone, and nothing was started. */
int line_accept(struct line *line);
int line_signal(const struct line *line);

/* The command has ended, and all it printed is with the client. */
int line_is_drained(const struct line *line);
/* The last frame. */
void line_reply(struct line *line, int exit_code, const char *json, size_t size);
/* The last frame, when the command has not been started and will not be. */
void line_refuse(struct line *line);
/* There is still something to hand over. */
int line_is_busy(const struct line *line);
/* Waits a moment until the client has closed: what it still sends must not break the connection before it has read the end. */
void line_linger(struct line *line);
void line_close(struct line *line);
