/*
 * Launch's side of a warm sandbox: a sandbox that is complete but for its command, and the one client that brings it.
 *
 * Theory of operation. `launch --warm DIRECTORY` builds a sandbox like any other, up to init, which has given up everything
 * and asks for the command. Then launch shows a socket `r<id>` in the directory, which only this user can enter. A client
 * claims it by renaming it to `c<id>`, so that no two have the same, connects and sends the command (lib/frames.h). Launch checks its uid,
 * that it has inherited the same limits and priority, that the host's mounts that the tree shows are what they were when it was
 * made, and that it serves the client's plan (runner/freshness.h), which it begins to look at while the client still prepares the
 * command, and finishes while the command's process gets ready; otherwise it refuses, and the client takes the cold way. From FRAME_TAKEN on it is an ordinary run that ends with the client's connection.
 * The sandbox serves one command and ends.
 */
#pragma once

#include "lib/frames.h"
#include "runner/host-mounts.h"
#include "lib/run-record.h"
#include "lib/inherited.h"

#include <poll.h>
#include <stddef.h>

/* What launch tells the keeper on its status descriptor, before the line of JSON, which holds no such bytes. */
#define WARM_IS_READY 1
#define WARM_IS_TAKEN 2

/* Entries that warm_watch fills. */
#define WARM_POLLS 6

struct warm {
  int directory; /* -1 = this is no warm sandbox */
  char name[RUN_ID_MAX + 2];
  struct inherited inherited;
  struct mounts mounts;
  int listener, client;
  int shown; /* the socket listens */

  struct frame header; /* of the frame that is being read */
  size_t have;         /* bytes of it, header included */
  char *body;
  int given[FRAME_DESCRIPTORS_MAX]; /* by the client, until they are handed over */
  int given_count;
  int same_inherited;
  const struct launchfile *own; /* what a warm sandbox is built from */
  struct launchfile plan; /* of the client, or its guards alone; none: size is 0 */
  int is_another; /* the client's plan, by its seal */
  int wants_plan; /* of a fork server's child: nothing is taken before it */
  int has_command;
  int taken; /* it will run: what the client sends is for it */
  int is_over; /* the last frame has been sent, or is queued */

  /* Framed streams: our ends of the command's pipes. */
  int input, output[2];
  char *kept; /* stdin that the pipe had no room for yet */
  size_t kept_size, kept_sent;
  int want_pending;
  char *queued; /* frames that the client had no room for yet */
  size_t queued_size, queued_sent;
};

enum warm_event {
  WARM_NOTHING,
  WARM_PLAN,   /* the plan of a cold run: warm_take_plan */
  WARM_RUN,    /* a command has come: warm_command, warm_streams, then warm_accept */
  WARM_SIGNAL, /* the client got a signal: warm_signal */
  WARM_STOP,   /* the run is to end by this signal: warm_signal */
  WARM_GONE,   /* no client will use this sandbox, or the one that did is gone */
};

#define WARM_NONE {.directory = -1, .mounts = MOUNTS_NONE, .listener = -1, .client = -1, .given = {-1, -1, -1, -1}, .input = -1, .output = {-1, -1}}

/* Before the tree is made: the socket, hidden, and the watch on the host's mounts. 0, or -1 with errno. */
int warm_prepare(struct warm *warm, const char *directory, const char *id, const struct launchfile *file, const char *init);
/* Shows the socket. */
int warm_show(struct warm *warm);
/* For a cold run: this client brings the command and gets its frames. */
void warm_adopt(struct warm *warm, int client);
/* The same for a client that brings the plan, too, and hears when its command is taken. */
void warm_adopt_with_plan(struct warm *warm, int client);
/* After WARM_PLAN: fills `file`, and returns how the streams go. NULL = it is no plan, and `problem` says why. */
const char *warm_take_plan(struct warm *warm, struct launchfile *file, const char **problem);
/* And pipes for the command's streams, stdin too if that is wanted. `streams` become the command's ends, which are the
 * caller's. 0, or -1 with errno. */
int warm_make_streams(struct warm *warm, int with_input, int streams[3]);

void warm_watch(const struct warm *warm, struct pollfd watched[WARM_POLLS]);
enum warm_event warm_relay(struct warm *warm, const struct pollfd watched[WARM_POLLS]);

/* A client of a pool has said that it comes with a command, and it may be served. */
int warm_is_announced(const struct warm *warm);
/* Its guards have come before its command, and are not those of the sandbox. */
int warm_has_guards(const struct warm *warm);
/* What its client has sent by now, without waiting. */
enum warm_event warm_read(struct warm *warm);

/* After WARM_RUN. The bytes are the command block; the descriptors are the command's streams. All become the caller's. */
char *warm_command(struct warm *warm, size_t *size);
int warm_streams(struct warm *warm, int streams[3]);
/* The descriptors that came with the command, if any did; 1 = they did. */
int warm_take_given(struct warm *warm, int streams[3]);
/* The client's gate, which becomes the caller's; -1 = none. */
int warm_gate(const struct warm *warm);
/* Tells the client that there is no way back. -1 = it is gone already, and nothing has been started. */
int warm_accept(struct warm *warm);
int warm_signal(const struct warm *warm);

/* The command has ended, and all it printed is with the client. */
int warm_is_drained(const struct warm *warm);
/* The last frame. */
void warm_reply(struct warm *warm, int exit_code, const char *json, size_t size);
/* The last frame, when the command has not been started and will not be. */
void warm_refuse(struct warm *warm);
/* There is still something to hand over. */
int warm_is_busy(const struct warm *warm);
/* Waits a moment until the client has closed: what it still sends must not break the connection before it has read the end. */
void warm_linger(struct warm *warm);
void warm_close(struct warm *warm);
