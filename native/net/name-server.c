#include "net/name-server.h"

#include "lib/loop.h"
#include "net/dns-message.h"
#include "net/questions.h"
#include "net/resolver.h"
#include "net/sockets.h"
#include "net/timers.h"
#include "net/upstream.h"
#include "net/verdicts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PENDING_MAX 256
#define CLIENTS_MAX 64
#define DATAGRAMS_A_TURN 64
#define READS_A_TURN 16 /* of one client over TCP, then it is the others' turn */
#define CLIENT_NS 10000000000ull /* for a client over TCP between two questions (RFC 7766, 6.2.3) */

/* A program that asks over TCP. */
struct client {
  struct source source; /* first: it is freed by it */
  struct timer silence; /* between questions alone: the resolver has its own limit */
  int pending;          /* one question at a time; the next is read when it has been answered */
  int closing;          /* when that has happened */
  int is_reading;       /* read_more is at work, and continues with the questions answered meanwhile */
  size_t have;
  unsigned char bytes[2 + DNS_QUESTION_MAX];
};

/* Where an answer goes. */
struct asker {
  struct client *client; /* NULL = `peer` */
  struct sockaddr_in peer;
};

/* A question that waits for the host's own resolver. */
struct pending {
  struct waiter waiter;
  struct asker asker;
  struct dns_question question;
  size_t size;
  unsigned char bytes[DNS_QUESTION_MAX];
};

static struct source datagrams = {.fd = -1}, listener = {.fd = -1};
static int pending_count, client_count;

static void read_more(struct client *client);

/* ---- answers ---- */

static void close_client(struct client *client) {
  client->closing = 1;
  timer_stop(&client->silence);
  if (client->pending) return (void)loop_watch(&client->source, 0);
  loop_close(&client->source);
  loop_free(client);
  client_count--;
}

static void on_silence(struct timer *timer) { close_client((struct client *)((char *)timer - offsetof(struct client, silence))); }

static void send_to_client(struct client *client, const unsigned char *bytes, size_t size) {
  unsigned char framed[2 + DNS_ANSWER_MAX] = {(unsigned char)(size >> 8), (unsigned char)size};
  memcpy(framed + 2, bytes, size);
  timer_start(&client->silence, CLIENT_NS, on_silence);
  if (!client->closing && send(client->source.fd, framed, size + 2, MSG_NOSIGNAL) != (ssize_t)size + 2) client->closing = 1;
}

/* A datagram that cannot be sent is lost, as datagrams may be. */
static void send_answer(const struct asker *asker, const unsigned char *bytes, const struct dns_question *question,
                        const struct dns_answer *answer) {
  unsigned char out[DNS_ANSWER_MAX];
  size_t size = dns_write_answer(bytes, question, answer, out);
  if (asker->client) return send_to_client(asker->client, out, size);
  (void)!sendto(datagrams.fd, out, size, MSG_NOSIGNAL, (const struct sockaddr *)&asker->peer, sizeof asker->peer);
}

static struct dns_answer no_such_name(int is_blocked) { return (struct dns_answer){.code = DNS_NO_SUCH_NAME, .is_blocked = is_blocked}; }

/* `address`: room for the one that the answer names. */
static struct dns_answer answer_of(struct host *host, struct address *address) {
  int is_left_to_proxy = host->state != HOST_FOUND && upstream_serves(host, 0); /* which may know it where this host does not */
  if (host->state != HOST_FOUND && !is_left_to_proxy) verdict_unresolved(host);
  if (host->state == HOST_FAILED && !is_left_to_proxy) return (struct dns_answer){.code = DNS_SERVER_FAILURE};
  if (host->state != HOST_FOUND && !is_left_to_proxy) return no_such_name(0);
  if (!is_left_to_proxy && !verdict_of_answer(host)) return no_such_name(1);
  if (hosts_place(host) < 0) return (struct dns_answer){.code = DNS_REFUSED};
  *address = address_of_v4(host->stand_in);
  return (struct dns_answer){.address = address};
}

static void on_resolved(struct waiter *waiter, struct host *host) {
  struct pending *pending = (struct pending *)waiter;
  struct client *client = pending->asker.client;
  struct address address;
  struct dns_answer answer = answer_of(host, &address);
  send_answer(&pending->asker, pending->bytes, &pending->question, &answer);
  free(pending);
  pending_count--;
  if (!client) return;
  client->pending = 0;
  if (client->is_reading) return;
  if (client->closing) close_client(client);
  else read_more(client);
}

/* ---- questions ---- */

static int resolve(const struct asker *asker, const unsigned char *bytes, size_t size, const struct dns_question *question) {
  struct host *host = hosts_find(question->name);
  struct pending *pending = host && pending_count < PENDING_MAX ? calloc(1, sizeof *pending) : NULL;
  if (!pending) return host ? hosts_release(host), -1 : -1;
  *pending = (struct pending){.waiter = {.resolved = on_resolved}, .asker = *asker, .question = *question, .size = size};
  memcpy(pending->bytes, bytes, size);
  pending_count++;
  if (asker->client) asker->client->pending = 1, timer_stop(&asker->client->silence);
  if (resolver_ask(host, &pending->waiter) == 0) return 0;
  if (asker->client) asker->client->pending = 0;
  pending_count--;
  free(pending);
  hosts_release(host);
  return -1;
}

static int is_localhost(const char *name) { return strcmp(name, "localhost") == 0 || host_name_is_below(name, "localhost"); }

static void answer_localhost(const struct asker *asker, const unsigned char *bytes, const struct dns_question *question) {
  struct address loopback = {.bytes = {[15] = 1}};
  if (question->type == DNS_A) loopback = address_of_v4(0x7f000001);
  send_answer(asker, bytes, question, &(struct dns_answer){.address = &loopback});
}

/* The name that a stand-in has. */
static void answer_reverse(const struct asker *asker, const unsigned char *bytes, const struct dns_question *question, uint32_t address) {
  const struct host *host = hosts_find_by_stand_in(address);
  struct dns_answer found = {.name = host ? host->name : NULL}, none = no_such_name(0);
  send_answer(asker, bytes, question, host ? &found : &none);
}

/* A name is resolved only after a person has allowed it, when the command connects to it. */
static int answer_unlisted(const struct asker *asker, const unsigned char *bytes, const struct dns_question *question) {
  struct host *host = questions_may_come(question->name) ? hosts_find(question->name) : NULL;
  if (!host || hosts_place(host) < 0) return -1;
  struct address address = address_of_v4(host->stand_in);
  return send_answer(asker, bytes, question, &(struct dns_answer){.address = &address}), 0;
}

static void answer_host(const struct asker *asker, const unsigned char *bytes, size_t size, const struct dns_question *question) {
  struct dns_answer blocked = no_such_name(1), refused = {.code = DNS_REFUSED};
  if (answer_unlisted(asker, bytes, question) == 0) return;
  if (!verdict_of_question(question->name)) return send_answer(asker, bytes, question, &blocked);
  if (resolve(asker, bytes, size, question) < 0) send_answer(asker, bytes, question, &refused);
}

static void answer_question(const struct asker *asker, const unsigned char *bytes, size_t size) {
  struct dns_question question;
  struct dns_answer none = no_such_name(0);
  uint32_t address;
  int code = dns_read_question(bytes, size, &question);
  if (code < 0) return;
  if (code != DNS_NO_ERROR) return send_answer(asker, bytes, &question, &(struct dns_answer){.code = (enum dns_code)code});
  if (!question.is_host) return send_answer(asker, bytes, &question, &none);
  if (dns_reverse_address(question.name, &address) == 0) return answer_reverse(asker, bytes, &question, address);
  if (is_localhost(question.name)) return answer_localhost(asker, bytes, &question);
  answer_host(asker, bytes, size, &question);
}

/* ---- UDP ---- */

static void on_datagrams(struct source *source, uint32_t events) {
  unsigned char bytes[DNS_QUESTION_MAX + 1]; /* one more: what is too long is seen to be */
  (void)events;
  for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
    struct asker asker = {.client = NULL};
    socklen_t room = sizeof asker.peer;
    ssize_t got = recvfrom(source->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&asker.peer, &room);
    if (got < 0) return;
    answer_question(&asker, bytes, (size_t)got);
  }
}

int name_server_on_udp(int fd) {
  datagrams = (struct source){.fd = fd, .ready = on_datagrams};
  return loop_watch(&datagrams, EPOLLIN);
}

/* ---- TCP ---- */

/* Answers what has come as a whole, until one has to wait. */
static void answer_all(struct client *client) {
  const struct asker asker = {.client = client};
  while (client->have >= 2 && !client->pending && !client->closing) {
    size_t size = (size_t)client->bytes[0] << 8 | client->bytes[1];
    unsigned char question[DNS_QUESTION_MAX];
    if (size > DNS_QUESTION_MAX) client->closing = 1;
    if (client->closing || client->have < 2 + size) return;
    memcpy(question, client->bytes + 2, size);
    client->have -= 2 + size;
    memmove(client->bytes, client->bytes + 2 + size, client->have);
    answer_question(&asker, question, size);
  }
}

static void read_more(struct client *client) {
  client->is_reading = 1;
  answer_all(client);
  for (int reads = 0; reads < READS_A_TURN && !client->pending && !client->closing; reads++) {
    ssize_t got = recv(client->source.fd, client->bytes + client->have, sizeof client->bytes - client->have, 0);
    if (is_not_yet(got)) break;
    if (got <= 0) client->closing = 1;
    else client->have += (size_t)got, answer_all(client);
  }
  client->is_reading = 0;
  if (client->closing || loop_watch(&client->source, client->pending ? 0 : EPOLLIN) < 0) close_client(client);
}

static void on_client(struct source *source, uint32_t events) {
  (void)events;
  read_more((struct client *)source);
}

static void on_listener(struct source *source, uint32_t events) {
  (void)events;
  int fd = socket_accept(source->fd);
  if (fd < 0) return;
  struct client *client = client_count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
  if (!client) return (void)close(fd);
  *client = (struct client){.source = {.fd = fd, .ready = on_client}};
  timer_start(&client->silence, CLIENT_NS, on_silence);
  client_count++;
  read_more(client);
}

int name_server_on_tcp(int fd) {
  listener = (struct source){.fd = fd, .ready = on_listener};
  return loop_watch(&listener, EPOLLIN);
}
