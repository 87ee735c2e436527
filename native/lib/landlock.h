/* Landlock's structure and rights as of Linux 6.12 (ABI 6) and 7.1 (ABI 9): newer than the headers that we build with. */
#pragma once

#include <stdint.h>

struct landlock_rules {
  uint64_t handled_fs, handled_net, scoped;
};

#define RIGHTS_OF_FIRST ((1ull << 13) - 1)
#define RIGHT_MAKE_SOCK (1ull << 9)
#define RIGHT_MAKE_FIFO (1ull << 10)
#define RIGHT_REFER (1ull << 13)
#define RIGHT_TRUNCATE (1ull << 14)
#define RIGHT_IOCTL_DEVICE (1ull << 15)
#define RIGHT_RESOLVE_UNIX (1ull << 16)
/* All that ABI 6 knows. */
#define RIGHTS_OF_SCOPES ((1ull << 16) - 1)

#define NET_BIND_TCP (1ull << 0)
#define NET_CONNECT_TCP (1ull << 1)

#define SCOPE_ABSTRACT_SOCKETS (1ull << 0)
#define SCOPE_SIGNALS (1ull << 1)
