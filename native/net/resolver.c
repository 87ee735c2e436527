#include "net/resolver.h"

#include "lib/loop.h"
#include "lib/report-failure.h"
#include "net/dns-reply.h"
#include "net/host-files.h"
#include "net/sockets.h"
#include "net/timers.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUESTIONS_MAX 200
/* For so long addresses are dialled before the name is asked for again; the second is for a name that is not there, or that failed. */
#define FRESH_NS 30000000000ull
#define FRESH_FAILURE_NS 1000000000ull
#define MS 1000000ull
/* For the addresses of one family when those of the other have come. */
#define MOMENT_NS (500 * MS)
#define PORT 53
#define DATAGRAM_MAX 4096
#define STREAM_MAX (16u << 10) /* a name with more addresses than that holds is used without the rest */

enum family { FAMILY_V4, FAMILY_V6, FAMILIES };

/* The two questions about a name, on one socket. */
struct question {
  struct source source; /* first: it is found by it, and freed */
  struct timer timer;
  struct host *host;
  struct name_servers servers;
  unsigned asked; /* servers until now, over all attempts */
  struct {
    uint16_t id;
    enum host_state state; /* HOST_ASKED until a reply has come */
  } of[FAMILIES];
  int count;
  struct address address[HOST_ADDRESSES_MAX];
  unsigned char *stream; /* over TCP, because a reply did not fit: its bytes; else NULL */
  size_t have;
};

static unsigned question_count;

static void ask_next_server(struct question *question);
static void on_time(struct timer *timer);

/* ---- the end of a question ---- */

static void tell_waiters(struct host *host) {
  while (host->waiters) {
    struct waiter *waiter = host->waiters;
    host->waiters = waiter->next;
    waiter->resolved(waiter, host);
  }
}

static int has(const struct question *question, enum host_state state) {
  return question->of[FAMILY_V4].state == state || question->of[FAMILY_V6].state == state;
}

/* Addresses of one family are enough. */
static enum host_state state_of(const struct question *question) {
  if (question->count > 0) return HOST_FOUND;
  return has(question, HOST_ASKED) || has(question, HOST_FAILED) ? HOST_FAILED : HOST_ABSENT;
}

static void conclude(struct question *question) {
  struct host *host = question->host;
  host->state = state_of(question);
  host->known_at = now_ns();
  host->count = question->count;
  memcpy(host->address, question->address, sizeof host->address);
  timer_stop(&question->timer);
  question_count--;
  loop_close(&question->source);
  free(question->stream);
  loop_free(question);
  tell_waiters(host);
  hosts_release(host);
}

/* ---- replies ---- */

static struct dns_query query_of(const struct question *question, enum family family) {
  return (struct dns_query){question->of[family].id, family == FAMILY_V4 ? DNS_A : DNS_AAAA, question->host->name};
}

static void keep_addresses(struct question *question, const struct dns_reply *reply) {
  for (int i = 0; i < reply->count && question->count < HOST_ADDRESSES_MAX; i++) question->address[question->count++] = reply->address[i];
}

static void end_all(struct question *question) {
  for (enum family family = 0; family < FAMILIES; family++)
    if (question->of[family].state == HOST_ASKED) question->of[family].state = HOST_ABSENT;
}

static void keep_reply(struct question *question, enum family family, const struct dns_reply *reply) {
  int is_answer = reply->code == DNS_NO_ERROR || reply->code == DNS_NO_SUCH_NAME;
  question->of[family].state = !is_answer ? HOST_FAILED : reply->count > 0 ? HOST_FOUND : HOST_ABSENT;
  if (is_answer) keep_addresses(question, reply);
  if (reply->code == DNS_NO_SUCH_NAME) end_all(question); /* a name that is not there has nothing of either family */
  if (question->count > 0 && question->timer.until > now_ns() + MOMENT_NS) timer_start(&question->timer, MOMENT_NS, on_time);
}

static void reset_stream(struct question *question) {
  free(question->stream);
  question->stream = NULL;
  question->have = 0;
}

static void ask_again(struct question *question) {
  loop_close(&question->source);
  reset_stream(question);
  question->asked++;
  ask_next_server(question);
}

static void ask_by_stream(struct question *question);

static void on_time(struct timer *timer) {
  struct question *question = (struct question *)((char *)timer - offsetof(struct question, timer));
  if (question->count > 0) conclude(question);
  else ask_again(question);
}

/* Returns 1 when the question has another socket now, or has ended. */
static int on_reply(struct question *question, const unsigned char *bytes, size_t size) {
  for (enum family family = 0; family < FAMILIES; family++) {
    const struct dns_query query = query_of(question, family);
    struct dns_reply reply;
    if (question->of[family].state != HOST_ASKED || dns_read_reply(bytes, size, &query, &reply) < 0) continue;
    if (reply.is_truncated && !question->stream) return ask_by_stream(question), 1;
    keep_reply(question, family, &reply);
  }
  if (has(question, HOST_ASKED)) return 0;
  if (question->count == 0 && has(question, HOST_FAILED)) return ask_again(question), 1;
  return conclude(question), 1;
}

static void on_datagrams(struct source *source, uint32_t events) {
  struct question *question = (struct question *)source;
  unsigned char bytes[DATAGRAM_MAX];
  (void)events;
  for (;;) {
    ssize_t got = recv(source->fd, bytes, sizeof bytes, 0);
    if (is_not_yet(got)) return;
    if (got < 0) return ask_again(question); /* no server listens there */
    if (on_reply(question, bytes, (size_t)got)) return;
  }
}

/* ---- questions ---- */

static int open_to_server(struct question *question, int type) {
  struct sockaddr_storage name;
  socklen_t size = address_to_socket(&question->servers.address[question->asked % (unsigned)question->servers.count], PORT, &name);
  loop_close(&question->source);
  question->source.fd = socket(name.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (question->source.fd < 0) return -1;
  return connect(question->source.fd, (struct sockaddr *)&name, size) < 0 && errno != EINPROGRESS ? -1 : 0;
}

static int send_queries(struct question *question) {
  unsigned char bytes[2 + DNS_QUERY_MAX];
  for (enum family family = 0; family < FAMILIES; family++) {
    if (question->of[family].state != HOST_ASKED) continue;
    const struct dns_query query = query_of(question, family);
    size_t size = dns_write_query(&query, bytes + 2), skipped = question->stream ? 0 : 2;
    bytes[0] = (unsigned char)(size >> 8), bytes[1] = (unsigned char)size; /* over TCP alone */
    if (send(question->source.fd, bytes + skipped, size + 2 - skipped, MSG_NOSIGNAL) != (ssize_t)(size + 2 - skipped)) return -1;
  }
  return 0;
}

static int choose_ids(struct question *question) {
  for (enum family family = 0; family < FAMILIES; family++) {
    if (question->of[family].state == HOST_FAILED) question->of[family].state = HOST_ASKED;
    if (getrandom(&question->of[family].id, sizeof question->of[family].id, 0) != sizeof question->of[family].id) return -1;
  }
  return 0;
}

static int ask_server(struct question *question) {
  question->source.ready = on_datagrams;
  timer_start(&question->timer, question->servers.timeout_ms * MS, on_time);
  if (choose_ids(question) < 0 || open_to_server(question, SOCK_DGRAM) < 0 || send_queries(question) < 0) return -1;
  return loop_watch(&question->source, EPOLLIN);
}

static void ask_next_server(struct question *question) {
  unsigned most = (unsigned)question->servers.count * question->servers.attempts;
  while (question->asked < most && ask_server(question) < 0) question->asked++;
  if (question->asked >= most) conclude(question);
}

/* ---- over TCP ---- */

/* The replies that have come as a whole. Returns as on_reply. */
static int read_replies(struct question *question) {
  while (question->have >= 2) {
    size_t size = (size_t)question->stream[0] << 8 | question->stream[1];
    if (size > STREAM_MAX - 2) return ask_again(question), 1;
    if (question->have < 2 + size) return 0;
    if (on_reply(question, question->stream + 2, size)) return 1;
    question->have -= 2 + size;
    memmove(question->stream, question->stream + 2 + size, question->have);
  }
  return 0;
}

static void on_stream(struct source *source, uint32_t events) {
  struct question *question = (struct question *)source;
  if (events & EPOLLOUT) {
    if (send_queries(question) < 0 || loop_watch(source, EPOLLIN) < 0) ask_again(question);
    return;
  }
  ssize_t got = recv(source->fd, question->stream + question->have, STREAM_MAX - question->have, 0);
  if (is_not_yet(got)) return;
  if (got <= 0) return ask_again(question);
  question->have += (size_t)got;
  (void)read_replies(question);
}

static void ask_by_stream(struct question *question) {
  question->stream = malloc(STREAM_MAX);
  question->source.ready = on_stream;
  timer_start(&question->timer, question->servers.timeout_ms * MS, on_time);
  if (!question->stream || open_to_server(question, SOCK_STREAM) < 0 || loop_watch(&question->source, EPOLLOUT) < 0) ask_again(question);
}

/* ---- what others call ---- */

static int is_fresh(const struct host *host) {
  uint64_t age = now_ns() - host->known_at;
  if (host->is_planned) return 1;
  if (host->state == HOST_FOUND) return age < FRESH_NS;
  return (host->state == HOST_ABSENT || host->state == HOST_FAILED) && age < FRESH_FAILURE_NS;
}

static struct question *new_question(struct host *host) {
  struct question *question = question_count < QUESTIONS_MAX ? calloc(1, sizeof *question) : NULL;
  if (!question) return NULL;
  question->source.fd = -1;
  question->host = host;
  question->of[FAMILY_V4].state = question->of[FAMILY_V6].state = HOST_ASKED;
  question_count++;
  host->state = HOST_ASKED;
  return question;
}

/* Where a file of the host cannot be read the question fails: /etc/hosts may say something else of the name than a server. */
static void begin(struct question *question) {
  int known = host_files_addresses(question->host->name, question->address, HOST_ADDRESSES_MAX);
  question->count = known > 0 ? known : 0;
  if (known != 0 || host_files_servers(&question->servers) < 0) return conclude(question);
  ask_next_server(question);
}

int resolver_ask(struct host *host, struct waiter *waiter) {
  if (is_fresh(host)) return waiter->resolved(waiter, host), 0;
  struct question *question = host->state == HOST_ASKED ? NULL : new_question(host);
  if (host->state != HOST_ASKED) return -1;
  waiter->next = host->waiters;
  host->waiters = waiter;
  if (question) begin(question);
  return 0;
}

void resolver_forget(struct host *host, const struct waiter *waiter) {
  for (struct waiter **at = &host->waiters; *at; at = &(*at)->next)
    if (*at == waiter) {
      *at = waiter->next;
      return;
    }
}

