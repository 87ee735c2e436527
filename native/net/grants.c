#include "net/grants.h"

#include "lib/loop.h"
#include "lib/report-failure.h"
#include "net/address.h"
#include "net/questions.h"
#include "net/rows.h"
#include "net/sockets.h"
#include "net/verdicts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 16
#define LINE_MAX_BYTES 1024
#define EVENT_MAX_BYTES (NET_HOST_MAX + NET_RULE_MAX + 160)
#define FIELDS_MAX 4

struct client {
  struct source source; /* first: it is freed by it */
  struct client *next, **link;
  int is_watching, is_asking, is_closing;
  size_t have;
  char bytes[LINE_MAX_BYTES];
};

static struct source listener = {.fd = -1};
static struct client *clients;
static int is_wanted, client_count, watcher_count;
static uid_t owner;

/* ---- saying ---- */

static void say(struct client *client, const char *text) {
  ssize_t size = (ssize_t)strlen(text);
  if (client->is_closing || send(client->source.fd, text, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) == size) return;
  client->is_closing = 1;
  (void)shutdown(client->source.fd, SHUT_RDWR); /* its end is seen here, too, and closes it */
}

static void tell_watchers(const char *text) {
  for (struct client *client = clients; client; client = client->next)
    if (client->is_watching) say(client, text);
}

static void tell(const char *what, const struct net_row *row, uint16_t source, uint64_t in, uint64_t out) {
  char text[EVENT_MAX_BYTES];
  snprintf(text, sizeof text, "event\t%s\t%s\t%u\t%" PRIu32 "\t%s\t%u\t%" PRIu64 "\t%" PRIu64 "\n", what, row->host, row->port, row->verdict, row->rule,
           source, in, out);
  tell_watchers(text);
}

static void on_count(const char *host, uint16_t port, enum net_verdict verdict, const char *rule, uint16_t source) {
  struct net_row row = {.port = port, .verdict = verdict};
  copy_text(row.host, sizeof row.host, host);
  copy_text(row.rule, sizeof row.rule, rule);
  tell("begin", &row, source, 0, 0);
}

static void on_end(const struct net_row *row, uint16_t source, uint64_t in, uint64_t out) { tell("end", row, source, in, out); }

static struct client *find_asker(void) {
  for (struct client *client = clients; client; client = client->next)
    if (client->is_asking && !client->is_closing) return client;
  return NULL;
}

static int ask(const char *host, uint16_t port, int fd) {
  char text[EVENT_MAX_BYTES];
  struct client *asker = find_asker();
  if (!asker) return -1;
  snprintf(text, sizeof text, "question\t%s\t%u\t%u\n", host, port, address_peer_port(fd));
  return say(asker, text), 0;
}

/* ---- hearing ---- */

static void take_rule(struct client *client, const char *const word[3]) {
  char text[NET_RULE_MAX + 16];
  const char *denial = NULL;
  if (verdicts_add(word, &denial) < 0) return say(client, "invalid\n");
  snprintf(text, sizeof text, "denied\t%s\n", denial ? denial : "");
  if (denial) return say(client, text);
  say(client, "allowed\n");
  questions_judge_again();
}

static int take_refusal(const char *host, const char *text) {
  uint64_t port;
  if (parse_number(text, UINT16_MAX, &port) < 0) return -1;
  return questions_refuse(host, (uint16_t)port), 0;
}

static void take_watcher(struct client *client) {
  static const struct rows_watcher watcher = {on_count, on_end};
  watcher_count += !client->is_watching;
  client->is_watching = 1;
  rows_watch(&watcher);
  say(client, "watching\n");
}

static void take_asker(struct client *client) {
  if (find_asker()) return say(client, "taken\n");
  client->is_asking = 1;
  say(client, "asking\n");
  questions_begin(ask);
}

/* -1: the protocol has no such line. */
static int take_line(struct client *client, char *line) {
  const char *field[FIELDS_MAX];
  char *rest = line;
  int count = 0;
  for (char *one; count < FIELDS_MAX && (one = strsep(&rest, "\t"));) field[count++] = one;
  if (rest) return -1;
  if (count == 4 && strcmp(field[0], "allow") == 0) return take_rule(client, field + 1), 0;
  if (count == 3 && strcmp(field[0], "refuse") == 0) return take_refusal(field[1], field[2]);
  if (count == 1 && strcmp(field[0], "watch") == 0) return take_watcher(client), 0;
  if (count == 1 && strcmp(field[0], "ask") == 0) return take_asker(client), 0;
  return -1;
}

static void take_lines(struct client *client) {
  for (char *end; !client->is_closing && (end = memchr(client->bytes, '\n', client->have));) {
    size_t size = (size_t)(end - client->bytes) + 1;
    *end = 0;
    if (strlen(client->bytes) + 1 != size || take_line(client, client->bytes) < 0) client->is_closing = 1;
    client->have -= size;
    memmove(client->bytes, end + 1, client->have);
  }
  if (client->have == sizeof client->bytes) client->is_closing = 1;
}

static void close_client(struct client *client) {
  int was_asking = client->is_asking;
  if ((*client->link = client->next)) client->next->link = client->link;
  watcher_count -= client->is_watching;
  if (!watcher_count) rows_watch(NULL);
  loop_close(&client->source);
  loop_free(client);
  client_count--;
  if (was_asking) questions_end();
}

static void on_client(struct source *source, uint32_t events) {
  struct client *client = (struct client *)source;
  (void)events;
  ssize_t got = recv(source->fd, client->bytes + client->have, sizeof client->bytes - client->have, MSG_DONTWAIT);
  if (is_not_yet(got)) return;
  if (got <= 0) return close_client(client);
  client->have += (size_t)got;
  take_lines(client);
  if (client->is_closing) close_client(client);
}

static int is_owner(int fd) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == owner;
}

static void on_listener(struct source *source, uint32_t events) {
  (void)events;
  int fd = socket_accept(source->fd);
  if (fd < 0) return;
  struct client *client = is_owner(fd) && client_count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
  if (!client) return (void)close(fd);
  *client = (struct client){.source = {.fd = fd, .ready = on_client}, .next = clients, .link = &clients};
  if (clients) clients->link = &client->next;
  clients = client;
  client_count++;
  if (loop_watch(&client->source, EPOLLIN) < 0) close_client(client);
}

void grants_read(const struct launchfile *file) {
  struct entry grants;
  is_wanted = launchfile_find(file, V_NET_GRANTS, &grants);
  if (is_wanted && strcmp(grants.word[0], "ask") == 0) questions_expect();
  owner = getuid(); /* before we take another id */
}

int grants_on(int fd) {
  if (!is_wanted) return close(fd);
  listener = (struct source){.fd = fd, .ready = on_listener};
  return loop_watch(&listener, EPOLLIN);
}
