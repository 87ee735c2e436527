#include "net/upstream.h"

#include "lib/report-failure.h"
#include "net/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ASKING_MAX 2048
#define PEEKED_MAX 4096

static struct host proxy = {.stand_in = 1}; /* no table has it: one without a stand-in would be looked for there at its release */
static uint16_t proxy_port;
static const char *authorization;
static struct rules direct;

static int read_place(const struct entry *entry) {
  uint64_t port;
  if (parse_number(entry->word[1], UINT16_MAX, &port) < 0 || port == 0) return -1;
  proxy_port = (uint16_t)port;
  authorization = strcmp(entry->word[2], "none") == 0 ? NULL : entry->word[2];
  if (address_parse(entry->word[0], &proxy.address[0]) < 0) return host_name_canonical(entry->word[0], strlen(entry->word[0]), proxy.name);
  proxy.count = 1;
  proxy.state = HOST_FOUND;
  return proxy.is_planned = 1, 0;
}

int upstream_read(const struct launchfile *file) {
  struct entry entry;
  if (rules_read(file, V_NET_DIRECT, &direct) < 0) return -1;
  if (!launchfile_find(file, V_NET_UPSTREAM, &entry)) return 0;
  return read_place(&entry) < 0 ? (errno = EINVAL, -1) : 0;
}

int upstream_serves(const struct host *host, uint16_t port) {
  if (!proxy_port || !host || host->is_planned) return 0;
  return !(port ? rules_judge_name(&direct, host->name, port) : rules_judge_any_port(&direct, host->name)).is_allowed;
}

struct host *upstream_host(void) { return &proxy; }
uint16_t upstream_port(void) { return proxy_port; }

/* A new connection takes so little at once. */
int upstream_ask(int fd, const struct host *host, uint16_t port) {
  char text[ASKING_MAX];
  int size = snprintf(text, sizeof text, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n", host->name, port, host->name, port,
                      authorization ? "Proxy-Authorization: Basic " : "", authorization ? authorization : "", authorization ? "\r\n" : "");
  if (size < 0 || (size_t)size >= sizeof text) return errno = EMSGSIZE, -1;
  return send(fd, text, (size_t)size, MSG_NOSIGNAL) == size ? 0 : -1;
}

static int is_success(const struct upstream_answer *answer) {
  const char *at = answer->start;
  int is_http = answer->size >= sizeof answer->start && memcmp(at, "HTTP/1.", 7) == 0 && (at[7] == '0' || at[7] == '1') && at[8] == ' ';
  return is_http && at[9] == '2' && at[10] >= '0' && at[10] <= '9' && at[11] >= '0' && at[11] <= '9';
}

/* Counts on to the empty line: CR LF CR LF. */
static int ends_with(struct upstream_answer *answer, char byte) {
  if (answer->size < sizeof answer->start) answer->start[answer->size] = byte;
  answer->size++;
  if (byte == '\r') answer->matched = answer->matched == 2 ? 3 : 1;
  else answer->matched = byte == '\n' && (answer->matched == 1 || answer->matched == 3) ? answer->matched + 1 : 0;
  return answer->matched == 4;
}

/* Only the head is taken: what follows it is the host's. */
int upstream_hear(int fd, struct upstream_answer *answer) {
  char bytes[PEEKED_MAX];
  ssize_t got = recv(fd, bytes, sizeof bytes, MSG_PEEK), size = 0;
  int is_over = 0;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (got == 0) return -1;
  while (size < got && !is_over) is_over = ends_with(answer, bytes[size++]);
  if (answer->size > UPSTREAM_HEAD_MAX || recv(fd, bytes, (size_t)size, 0) != size) return -1;
  return is_over ? (is_success(answer) ? 1 : -1) : 0;
}
