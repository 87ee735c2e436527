/*
 * The messages on the socket between a run and its caller: frames, each a header and `size` bytes, in the byte order of the machine.
 * Spoken by native/client/pool-client.c and src/backends/namespace/frames.ts on one side, by native/runner/line.c on the other.
 *
 * The caller of a cold run has started launch with its end of the socket as RUN_FD; the client of a warm sandbox has claimed one. Either
 * sends FRAME_GUARDS or FRAME_SAME (optional) and FRAME_RUN, with the command's three streams as descriptors of any byte of them, or without: then they
 * are launch's own or come as frames, too. launch answers FRAME_STATUS at the end, or FRAME_REFUSED: the command was not and will not be
 * started. After the last frame it shuts its side of the socket.
 *
 * The caller of a fork server (runner/fork-server.h) has only connected to it. It sends FRAME_PLAN before all else, and no descriptors, and
 * gets FRAME_TAKEN before anything is made.
 *
 * For a warm sandbox it sends the same and gets FRAME_READY. The rest is as below, without FRAME_CALLER and a gate.
 *
 * The warm sandbox of a pool is a child of the keeper, not of its client. The client sends FRAME_CALLER first, as soon as it has claimed it,
 * and it begins to look whether its plan still holds (runner/freshness.h), and to a blank one FRAME_PLACES, its directories. With its command it may send a fourth descriptor, the
 * gate, an eventfd that holds 1. The command's process reads it right before the command starts, or the client does, and then it never
 * will: that decides which of them has the run when the sandbox is killed. FRAME_TAKEN is the promise that the command may have been
 * started: a client that has not seen it, or has read the gate, may run the command in another way; any other must not, unless
 * FRAME_REFUSED follows.
 */
#pragma once

#include "lib/contract.h"

#include <stdint.h>

/* In the directory of a pool: a link whose text is the seal of the plan that its sandboxes are built from. */
#define POOL_SEAL "seal"

struct frame {
  uint32_t kind, size;
};
