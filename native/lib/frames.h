/*
 * What is said over the socket of a warm sandbox: frames, each a header and `size` bytes, in the byte order of the machine.
 * Spoken by native/client/pool-client.c and src/backends/namespace/frames.ts on one side, by native/runner/run-protocol.c on the other.
 *
 * A client sends FRAME_CALLER, FRAME_GUARDS (both optional) and FRAME_RUN, with its three streams as descriptors of the first
 * byte, or without descriptors: then the streams come as frames, too. A fourth descriptor is the gate, an eventfd: nothing is
 * started before something is written to it. FRAME_TAKEN is the promise that the command may have been started, as soon as the
 * gate is open: a client that has not seen it, or keeps the gate closed, may run the command in another way; a client that has
 * seen it must not, unless FRAME_REFUSED follows. After the last frame the sandbox shuts its side of the socket.
 */
#pragma once

#include "lib/contract.h"

#include <stdint.h>

struct frame {
  uint32_t kind, size;
};
