/*
 * The head of a request to the HTTP proxy: CONNECT, or a URL (RFC 9112, 3.2). Pure.
 *
 * Nothing is guessed: lines end with CR LF, there is one space between the words of the first one, no control characters, no folded
 * lines, one length at most. A URL is http:// with a plain host; the forwarded head has the host that was judged, whatever
 * `Host` has said. A connection leads to one host: the forwarded head says `Connection: close`. Bytes after a body of known length
 * are dropped; a body in chunks is not inspected, so all that the client sends then goes to the host that was judged, and to no other.
 */
#pragma once

#include "net/target.h"

#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 8192
/* Bytes that are added: a space behind the colon of each field (one of four bytes is the shortest), the host, one line. */
#define HTTP_HEAD_OUT_MAX (HTTP_HEAD_MAX + HTTP_HEAD_MAX / 4 + TARGET_TEXT_MAX + 64)
#define HTTP_BODY_UNTIL_END UINT64_MAX

enum http_status {
  HTTP_INCOMPLETE = 0,
  HTTP_OK = 200,
  HTTP_BAD_REQUEST = 400,
  HTTP_HEAD_TOO_LARGE = 431,
};

struct http_head {
  struct target target;
  int is_tunnel;  /* CONNECT */
  uint64_t body;  /* bytes that follow and belong to the request; HTTP_BODY_UNTIL_END in a tunnel, and of a body in chunks */
  size_t size;
  size_t method_size, path, path_size; /* of a request with a URL: where in the bytes they are */
};

enum http_status http_head_read(const char *bytes, size_t size, struct http_head *head);
/* The head for the server; returns its size. `bytes`: what http_head_read has read `head`, no tunnel, from. */
size_t http_head_write(const char *bytes, const struct http_head *head, char to[HTTP_HEAD_OUT_MAX]);
