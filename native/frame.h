/*
 * What is said over the socket of a warm sandbox: frames, each a header and `size` bytes, in the byte order of the machine.
 * Spoken by native/claim.c and src/backends/namespace/frames.ts on one side, by native/warm.c on the other.
 *
 * A client sends FRAME_CALLER, FRAME_GUARDS (both optional) and FRAME_RUN, with its three streams as descriptors of the first
 * byte, or without descriptors: then the streams come as frames, too. A fourth descriptor is the gate, an eventfd: nothing is
 * started before something is written to it. FRAME_TAKEN is the promise that the command may have been started, as soon as the
 * gate is open: a client that has not seen it, or keeps the gate closed, may run the command in another way; a client that has
 * seen it must not, unless FRAME_REFUSED follows. After the last frame the sandbox shuts its side of the socket.
 */
#ifndef LLM_DO_FRAME_H
#define LLM_DO_FRAME_H

#include <stdint.h>

enum frame_kind {
  FRAME_CALLER = 1, /* struct standing */
  FRAME_RUN = 2,    /* the command: argc, envc, then the words, each ended by NUL, as for init */
  FRAME_SIGNAL = 3, /* int32: a signal that the client got */
  FRAME_INPUT = 4,  /* the command's stdin, at most FRAME_DATA_MAX, the first unasked, then one for each FRAME_WANT; empty = its end */
  FRAME_GUARDS = 5, /* a launch file of V_AT records: what must be on disk, or the command is refused */

  FRAME_TAKEN = 16,
  FRAME_REFUSED = 17, /* the command was not and will not be started, even if it had been taken */
  FRAME_WANT = 18,    /* what came is with the command: room for one more FRAME_INPUT */
  FRAME_OUTPUT = 19,  /* the command's stdout */
  FRAME_ERRORS = 20,  /* the command's stderr */
  FRAME_STATUS = 21,  /* uint32 exit status, then the line of JSON of status.h; the last frame */
};

struct frame {
  uint32_t kind, size;
};

#define FRAME_DESCRIPTORS 4
#define FRAME_DATA_MAX (64u << 10)
/* More than the kernel takes for argv and environment together on any machine we know (6 MiB). */
#define FRAME_RUN_MAX (16u << 20)

#endif
