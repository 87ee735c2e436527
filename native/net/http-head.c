#include "net/http-head.h"

#include <string.h>
#include <strings.h>

#define DIGITS_MAX 18 /* of a length; one more could overflow */

struct text {
  const char *at;
  size_t size;
};

static int equals(struct text text, const char *word) { return text.size == strlen(word) && strncasecmp(text.at, word, text.size) == 0; }

static struct text trim(struct text text) {
  while (text.size > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) text.at++, text.size--;
  while (text.size > 0 && (text.at[text.size - 1] == ' ' || text.at[text.size - 1] == '\t')) text.size--;
  return text;
}

/* The text before the next `end`, which must be there; `rest` then begins behind it. */
static int take_until(struct text *rest, const char *end, struct text *taken) {
  const char *found = memmem(rest->at, rest->size, end, strlen(end));
  if (!found) return 0;
  *taken = (struct text){rest->at, (size_t)(found - rest->at)};
  rest->at += taken->size + strlen(end), rest->size -= taken->size + strlen(end);
  return 1;
}

/* ---- characters ---- */

static int is_token(struct text text) {
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.at[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c)))) return 0;
  }
  return text.size > 0;
}

static int has_control(struct text text) {
  for (size_t i = 0; i < text.size; i++)
    if (((unsigned char)text.at[i] < 0x20 && text.at[i] != '\t') || text.at[i] == 0x7f) return 1;
  return 0;
}

/* ---- fields ---- */

struct field {
  struct text name, value;
};

/* 0 at the end of the head. A field that is none has no name. */
static int next_field(struct text *rest, struct field *field) {
  struct text line;
  if (!take_until(rest, "\r\n", &line) || line.size == 0) return 0;
  *field = (struct field){{line.at, 0}, {line.at, 0}};
  const char *colon = memchr(line.at, ':', line.size);
  if (!colon) return 1;
  struct text name = {line.at, (size_t)(colon - line.at)}, value = {colon + 1, line.size - (size_t)(colon + 1 - line.at)};
  if (is_token(name) && !has_control(value)) *field = (struct field){name, trim(value)};
  return 1;
}

static int read_length(struct text text, uint64_t *length) {
  if (text.size == 0 || text.size > DIGITS_MAX) return -1;
  for (*length = 0; text.size > 0; text.at++, text.size--) {
    if (text.at[0] < '0' || text.at[0] > '9') return -1;
    *length = *length * 10 + (uint64_t)(text.at[0] - '0');
  }
  return 0;
}

/* The length of the body is said once or not at all. */
static int read_fields(struct text rest, uint64_t *body) {
  struct field field;
  int lengths = 0;
  *body = 0;
  while (next_field(&rest, &field)) {
    if (field.name.size == 0) return -1;
    if (equals(field.name, "content-length")) lengths++;
    if (equals(field.name, "content-length") && read_length(field.value, body) < 0) return -1;
    if (!equals(field.name, "transfer-encoding")) continue;
    if (!equals(field.value, "chunked")) return -1;
    lengths++;
    *body = HTTP_BODY_UNTIL_END;
  }
  return lengths <= 1 ? 0 : -1;
}

/* ---- the first line ---- */

static int is_version(struct text text) { return text.size == 8 && (memcmp(text.at, "HTTP/1.1", 8) == 0 || memcmp(text.at, "HTTP/1.0", 8) == 0); }

static int read_url(const char *bytes, struct text url, struct http_head *head) {
  static const char scheme[] = "http://";
  size_t start = sizeof scheme - 1, host = 0;
  if (url.size < start || strncasecmp(url.at, scheme, start) != 0) return -1;
  url.at += start, url.size -= start;
  while (host < url.size && !strchr("/?#", url.at[host])) host++;
  head->path = (size_t)(url.at + host - bytes);
  head->path_size = url.size - host;
  return target_read(url.at, host, 80, &head->target);
}

static int read_first_line(const char *bytes, struct text line, struct http_head *head) {
  struct text method, where;
  if (has_control(line) || memchr(line.at, '\t', line.size)) return -1;
  if (!take_until(&line, " ", &method) || !take_until(&line, " ", &where) || !is_token(method) || !is_version(line)) return -1;
  head->method_size = method.size;
  head->is_tunnel = method.size == 7 && memcmp(method.at, "CONNECT", 7) == 0;
  return head->is_tunnel ? target_read(where.at, where.size, 0, &head->target) : read_url(bytes, where, head);
}

enum http_status http_head_read(const char *bytes, size_t size, struct http_head *head) {
  struct text rest = {bytes, size}, whole, line;
  *head = (struct http_head){.size = 0};
  if (!take_until(&rest, "\r\n\r\n", &whole)) return size >= HTTP_HEAD_MAX ? HTTP_HEAD_TOO_LARGE : HTTP_INCOMPLETE;
  rest = (struct text){bytes, head->size = whole.size + 4};
  if (head->size > HTTP_HEAD_MAX) return HTTP_HEAD_TOO_LARGE;
  if (!take_until(&rest, "\r\n", &line) || read_first_line(bytes, line, head) < 0 || read_fields(rest, &head->body) < 0) return HTTP_BAD_REQUEST;
  if (head->is_tunnel) head->body = HTTP_BODY_UNTIL_END;
  return HTTP_OK;
}

/* ---- the forwarded head ---- */

struct output {
  char *at;
  size_t size;
};

static void put(struct output *to, const char *bytes, size_t size) {
  memcpy(to->at + to->size, bytes, size);
  to->size += size;
}

static void put_text(struct output *to, const char *text) { put(to, text, strlen(text)); }

/* Of this connection only, or ours to say (RFC 9110, 7.6.1). */
static int is_between_us(struct text name) {
  static const char *const names[] = {"host", "connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "upgrade"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (equals(name, names[i])) return 1;
  return 0;
}

/* The length of the body stays: without it the server would take the body for something else. */
static void put_fields(struct output *to, struct text rest) {
  struct field field;
  while (next_field(&rest, &field)) {
    if (is_between_us(field.name)) continue;
    put(to, field.name.at, field.name.size);
    put_text(to, ": ");
    put(to, field.value.at, field.value.size);
    put_text(to, "\r\n");
  }
}

size_t http_head_write(const char *bytes, const struct http_head *head, char to[HTTP_HEAD_OUT_MAX]) {
  struct output out = {to, 0};
  struct text rest = {bytes, head->size}, line;
  char host[TARGET_TEXT_MAX];
  if (!take_until(&rest, "\r\n", &line)) return 0;
  target_print(&head->target, 80, host);
  put(&out, bytes, head->method_size);
  put_text(&out, head->path_size > 0 && bytes[head->path] == '/' ? " " : " /");
  const char *path_end = line.at + line.size; /* with " HTTP/1.1" */
  put(&out, bytes + head->path, (size_t)(path_end - (bytes + head->path)));
  put_text(&out, "\r\nHost: ");
  put_text(&out, host);
  put_text(&out, "\r\n");
  put_fields(&out, rest);
  put_text(&out, "Connection: close\r\n\r\n");
  return out.size;
}
