#include "net/proxy.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "net/http-head.h"
#include "lib/loop.h"
#include "net/relay.h"
#include "net/sockets.h"
#include "net/socks-message.h"
#include "net/timers.h"
#include "net/verdicts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 64 /* that have not said where they want to go, or have been refused; further ones wait in the kernel */
#define ASK_NS 10000000000ull
#define LEAVE_NS 1000000000ull /* for a client to take its refusal */
#define ANSWER_MAX 1024

struct listener {
  struct source source; /* first: it is found by it */
  const struct protocol *protocol;
};

struct client {
  struct source source; /* first: it is freed by it */
  struct timer timer;
  const struct protocol *protocol;
  int is_greeted; /* SOCKS: the request is next */
  size_t have;
  unsigned char bytes[HTTP_HEAD_MAX];
};

/* Why a target is not reached. */
struct refusal {
  const struct target *target;
  const struct rule *rule;       /* that denies it, or NULL */
  const struct address *address; /* of the name, that may not be dialled; or NULL */
  int error;                     /* EACCES: by the rules */
};

struct protocol {
  /* Reads what the client has sent so far; it may be gone, or given to the relay, when this returns. */
  void (*read)(struct client *client);
  void (*refuse)(int fd, const struct refusal *refusal);
  void (*failed)(int fd, const struct host *host, const struct address *address, uint16_t port, int error);
};

static struct listener listeners[2] = {{.source.fd = -1}, {.source.fd = -1}};
static unsigned client_count;

/* ---- clients ---- */

/* Waiting connections are accepted when there is room again. */
static void watch_listeners(void) {
  for (size_t i = 0; i < sizeof listeners / sizeof *listeners; i++)
    if (listeners[i].source.fd >= 0) (void)loop_watch(&listeners[i].source, client_count < CLIENTS_MAX ? EPOLLIN : 0);
}

static void forget(struct client *client) {
  timer_stop(&client->timer);
  loop_free(client);
  client_count--;
  watch_listeners();
}

static void end(struct client *client) {
  loop_close(&client->source);
  forget(client);
}

/* The descriptor is the caller's; what has been read stays until the next turn of the loop. */
static int release(struct client *client) {
  int fd = client->source.fd;
  int is_free = loop_watch(&client->source, 0) == 0;
  client->source.fd = -1;
  forget(client);
  if (is_free) return fd;
  return close_with(fd, -1);
}

static void on_time(struct timer *timer) { end((struct client *)((char *)timer - offsetof(struct client, timer))); }

static struct client *new_client(int fd, void (*ready)(struct source *, uint32_t), uint64_t patience) {
  struct client *client = calloc(1, sizeof *client);
  if (!client) return close(fd), NULL;
  client->source = (struct source){.fd = fd, .ready = ready};
  timer_start(&client->timer, patience, on_time);
  client_count++;
  if (loop_watch(&client->source, EPOLLIN) == 0) return client;
  end(client);
  return NULL;
}

static void on_leaving(struct source *source, uint32_t events) {
  char nothing[4096];
  (void)events;
  ssize_t got = recv(source->fd, nothing, sizeof nothing, 0);
  if (got <= 0 && !is_not_yet(got)) end((struct client *)source);
}

/* A socket that is closed with something unread is reset, and the other end may lose the answer: it is read until the client ends. */
static void answer_and_leave(int fd, const char *answer, size_t size) {
  if (send(fd, answer, size, MSG_NOSIGNAL) != (ssize_t)size || shutdown(fd, SHUT_WR) < 0 || client_count >= CLIENTS_MAX) return (void)close(fd);
  (void)new_client(fd, on_leaving, LEAVE_NS);
}

/* ---- where to ---- */

/* A stand-in address means its name: a client may look names up and then ask for the address. */
static void name_stand_in(struct target *target) {
  const struct host *host = !target->is_name && address_is_v4(&target->address) ? hosts_find_by_stand_in(address_v4(&target->address)) : NULL;
  if (!host) return;
  target->is_name = 1;
  copy_text(target->name, sizeof target->name, host->name);
}

/* Gives the relay a client whose request could be parsed: `request` says what the two ends get first. */
static void go(struct client *client, const struct target *target, struct relay_request request) {
  const struct protocol *protocol = client->protocol;
  struct judgement judgement = verdict_of_connection(target->is_name ? target->name : NULL, &target->address, target->port, &request.row);
  struct refusal refusal = {.target = target, .rule = judgement.rule, .error = EACCES};
  request.fd = release(client);
  if (request.fd < 0) return;
  if (judgement.is_allowed) {
    request.host = target->is_name ? hosts_find(target->name) : NULL;
    request.literal = target->address, request.port = target->port;
    request.failed = protocol->failed;
    if ((request.host || !target->is_name) && relay_begin(&request) == 0) return;
    if (request.host) hosts_release(request.host);
    refusal = (struct refusal){.target = target, .error = EAGAIN};
  }
  protocol->refuse(request.fd, &refusal);
}

static struct target target_of(const struct host *host, const struct address *address, uint16_t port) {
  struct target target = {.is_name = host != NULL, .address = *address, .port = port};
  if (host) copy_text(target.name, sizeof target.name, host->name);
  return target;
}

/* ---- HTTP ---- */

struct http_answer {
  int status;
  const char *reason;
};

static struct http_answer http_answer_of(int error) {
  switch (error) {
    case EACCES: return (struct http_answer){403, "Forbidden"};
    case EAGAIN: return (struct http_answer){503, "Service Unavailable"};
    case ETIMEDOUT: return (struct http_answer){504, "Gateway Timeout"};
    default: return (struct http_answer){502, "Bad Gateway"};
  }
}

static void http_answer(int fd, const struct http_answer *how, const char *line) {
  char answer[ANSWER_MAX];
  int size = snprintf(answer, sizeof answer, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\nllm-do: %s\n",
                      how->status, how->reason, strlen(line) + sizeof "llm-do: \n" - 1, line);
  if (size < 0 || (size_t)size >= sizeof answer) return (void)close(fd);
  answer_and_leave(fd, answer, (size_t)size);
}

/* One line: what is refused, and the flag that would allow it. */
static void describe(const struct refusal *refusal, char *line, size_t room) {
  char where[TARGET_TEXT_MAX], fix[TARGET_TEXT_MAX], address[ADDRESS_TEXT_MAX];
  const struct target *target = refusal->target;
  target_print(target, 0, where);
  target_print(target, target->port == 443 ? 443 : 80, fix); /* both are meant where a rule has no port */
  if (refusal->address) {
    address_print(refusal->address, address);
    snprintf(line, room, "%s leads to %s, which is private or this host's own: --allow-host %s", where, address, address);
  } else if (!target->is_name && address_is_of_sandbox(&target->address))
    snprintf(line, room, "%s means the sandbox itself, and the proxy leads out of it", where);
  else if (refusal->rule) snprintf(line, room, "%s is denied by --deny-host %s", where, refusal->rule->text);
  else if (refusal->error == EACCES) snprintf(line, room, "%s is not allowed: --allow-host %s", where, fix);
  else snprintf(line, room, "%s cannot be reached: %s", where, refusal->error == EAGAIN ? "too many connections" : strerror(refusal->error));
}

static void http_refuse(int fd, const struct refusal *refusal) {
  char line[2 * TARGET_TEXT_MAX + NET_RULE_MAX];
  struct http_answer how = http_answer_of(refusal->error);
  describe(refusal, line, sizeof line);
  http_answer(fd, &how, line);
}

static void http_failed(int fd, const struct host *host, const struct address *address, uint16_t port, int error) {
  struct target target = target_of(host, address, port);
  http_refuse(fd, &(struct refusal){.target = &target, .address = error == EACCES ? address : NULL, .error = error});
}

static void http_misunderstood(struct client *client, enum http_status status) {
  static const struct http_answer bad = {HTTP_BAD_REQUEST, "Bad Request"}, large = {HTTP_HEAD_TOO_LARGE, "Request Header Fields Too Large"};
  int fd = release(client);
  if (fd < 0) return;
  if (status == HTTP_HEAD_TOO_LARGE) http_answer(fd, &large, "expected a head of at most 8 KiB");
  else http_answer(fd, &bad, "expected CONNECT host:port or an absolute URL http://host[:port]/..., HTTP/1.0 or 1.1");
}

static void http_go(struct client *client, struct http_head *head) {
  static const char connected[] = "HTTP/1.1 200 Connection established\r\n\r\n";
  static char first[HTTP_HEAD_OUT_MAX + HTTP_HEAD_MAX];
  const char *bytes = (const char *)client->bytes;
  size_t rest = client->have - head->size, size = head->is_tunnel ? 0 : http_head_write(bytes, head, first);
  if (rest > head->body) rest = (size_t)head->body;
  memcpy(first + size, bytes + head->size, rest);
  go(client, &head->target, (struct relay_request){.first = first, .first_size = size + rest,
                                                   .left = head->body == HTTP_BODY_UNTIL_END ? head->body : head->body - rest,
                                                   .reply = connected, .reply_size = head->is_tunnel ? sizeof connected - 1 : 0});
}

static void http_read(struct client *client) {
  struct http_head head;
  enum http_status status = http_head_read((const char *)client->bytes, client->have, &head);
  if (status == HTTP_INCOMPLETE) return;
  if (status != HTTP_OK) return http_misunderstood(client, status);
  name_stand_in(&head.target);
  http_go(client, &head);
}

/* ---- SOCKS ---- */

static void socks_answer(int fd, enum socks_code code) {
  char reply[SOCKS_REPLY_BYTES];
  socks_write_reply(code, reply);
  answer_and_leave(fd, reply, sizeof reply);
}

static enum socks_code socks_code_of(int error) {
  switch (error) {
    case EACCES: return SOCKS_NOT_ALLOWED;
    case EAGAIN: return SOCKS_FAILURE;
    case ENETUNREACH: return SOCKS_NETWORK_UNREACHABLE;
    case ECONNREFUSED: return SOCKS_CONNECTION_REFUSED;
    case ETIMEDOUT: return SOCKS_TIMED_OUT;
    default: return SOCKS_HOST_UNREACHABLE;
  }
}

static void socks_refuse(int fd, const struct refusal *refusal) { socks_answer(fd, socks_code_of(refusal->error)); }

static void socks_failed(int fd, const struct host *host, const struct address *address, uint16_t port, int error) {
  (void)host, (void)address, (void)port;
  socks_answer(fd, socks_code_of(error));
}

static void consume(struct client *client, int size) {
  client->have -= (size_t)size;
  memmove(client->bytes, client->bytes + size, client->have);
}

/* A client must not go on before it has the answer, but what it sends anyway is the server's. */
static void socks_go(struct client *client, struct target *target, int size) {
  static char first[HTTP_HEAD_MAX];
  char reply[SOCKS_REPLY_BYTES];
  size_t rest = client->have - (size_t)size;
  memcpy(first, client->bytes + size, rest);
  socks_write_reply(SOCKS_SUCCEEDED, reply);
  name_stand_in(target);
  go(client, target, (struct relay_request){.first = first, .first_size = rest, .left = UINT64_MAX, .reply = reply, .reply_size = sizeof reply});
}

static void socks_request(struct client *client) {
  struct target target;
  enum socks_code code;
  int size = socks_read_request(client->bytes, client->have, &target, &code);
  if (size == 0) return;
  if (size < 0) return end(client);
  if (code == SOCKS_SUCCEEDED) return socks_go(client, &target, size);
  int fd = release(client);
  if (fd >= 0) socks_answer(fd, code);
}

static void socks_greeting(struct client *client) {
  static const char open[2] = {SOCKS_VERSION, 0}, none[2] = {SOCKS_VERSION, (char)0xff};
  int is_open = 0, size = socks_read_greeting(client->bytes, client->have, &is_open);
  if (size == 0) return;
  if (size < 0) return end(client);
  if (!is_open) {
    int fd = release(client);
    if (fd >= 0) answer_and_leave(fd, none, sizeof none);
    return;
  }
  if (send(client->source.fd, open, sizeof open, MSG_NOSIGNAL) != sizeof open) return end(client);
  client->is_greeted = 1;
  consume(client, size);
  socks_request(client);
}

static void socks_read(struct client *client) { client->is_greeted ? socks_request(client) : socks_greeting(client); }

/* ---- listening ---- */

static const struct protocol protocols[] = {
    [PROXY_HTTP] = {http_read, http_refuse, http_failed},
    [PROXY_SOCKS] = {socks_read, socks_refuse, socks_failed},
};

/* Both protocols are read whole or refused before the room is full. */
static void on_client(struct source *source, uint32_t events) {
  struct client *client = (struct client *)source;
  (void)events;
  ssize_t got = recv(source->fd, client->bytes + client->have, sizeof client->bytes - client->have, 0);
  if (is_not_yet(got)) return;
  if (got <= 0) return end(client);
  client->have += (size_t)got;
  client->protocol->read(client);
}

static void on_listener(struct source *source, uint32_t events) {
  (void)events;
  int fd = socket_accept(source->fd);
  struct client *client = fd >= 0 ? new_client(fd, on_client, ASK_NS) : NULL;
  if (!client) return;
  client->protocol = ((struct listener *)source)->protocol;
  watch_listeners();
}

int proxy_on(int fd, enum proxy_protocol protocol) {
  struct listener *listener = &listeners[protocol];
  if (listener->source.fd >= 0) return errno = EEXIST, -1;
  *listener = (struct listener){.source = {.fd = fd, .ready = on_listener}, .protocol = &protocols[protocol]};
  return loop_watch(&listener->source, EPOLLIN);
}
