/* Messages of a client of the SOCKS proxy (RFC 1928), and the answers. Pure. */
#pragma once

#include "net/target.h"

#include <stddef.h>

#define SOCKS_VERSION 5
#define SOCKS_MESSAGE_MAX 262 /* a request with a name of 255 bytes; the greeting has at most 257 */
#define SOCKS_REPLY_BYTES 10

enum socks_code {
  SOCKS_SUCCEEDED = 0,
  SOCKS_FAILURE = 1,
  SOCKS_NOT_ALLOWED = 2,
  SOCKS_NETWORK_UNREACHABLE = 3,
  SOCKS_HOST_UNREACHABLE = 4,
  SOCKS_CONNECTION_REFUSED = 5,
  SOCKS_TIMED_OUT = 6, /* "TTL expired" */
  SOCKS_NO_COMMAND = 7,
  SOCKS_NO_ADDRESS_TYPE = 8,
};

/* Bytes of the greeting; 0 = not all of it is there, -1 = it is none. `*is_open`: the client would go without authentication. */
int socks_read_greeting(const unsigned char *bytes, size_t size, int *is_open);
/* Bytes of the request, likewise; `*code` is not SOCKS_SUCCEEDED for one that cannot be served. */
int socks_read_request(const unsigned char *bytes, size_t size, struct target *target, enum socks_code *code);
void socks_write_reply(enum socks_code code, char to[SOCKS_REPLY_BYTES]);
