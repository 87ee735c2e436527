#include "net/rows.h"

#include "lib/files.h"
#include "lib/report-failure.h"

#include <string.h>

static struct net_row rows[NET_ROWS_MAX];
static struct net_report_head head;
static uint32_t refusals; /* rows of them: useless names cost a command nothing, and must not crowd out what it has reached */

static int is_refusal(enum net_verdict verdict) {
  return verdict == NET_NOT_LISTED || verdict == NET_DENIED || verdict == NET_NOT_PUBLIC || verdict == NET_UNRESOLVED;
}

static int has_room(enum net_verdict verdict) { return head.rows < NET_ROWS_MAX && (!is_refusal(verdict) || refusals < NET_ROWS_MAX / 2); }

static struct net_row *find(const char *host, uint16_t port, enum net_verdict verdict) {
  for (uint32_t i = 0; i < head.rows; i++)
    if (rows[i].port == port && rows[i].verdict == verdict && strcmp(rows[i].host, host) == 0) return &rows[i];
  return NULL;
}

static const struct rows_watcher *watcher;
static int judged = -1;

void rows_watch(const struct rows_watcher *wanted) { watcher = wanted; }

void rows_judge(int fd) { judged = fd; }

void rows_end(const struct net_row *row, int fd, uint64_t in, uint64_t out) {
  if (row && watcher) watcher->ended(row, address_peer_port(fd), in, out);
}

struct net_row *rows_count(const char *host, uint16_t port, enum net_verdict verdict, const char *rule) {
  if (watcher) watcher->counted(host, port, verdict, rule ? rule : "", address_peer_port(judged));
  struct net_row *row = find(host, port, verdict);
  if (!row && !has_room(verdict)) return head.omitted++, NULL;
  if (!row) {
    refusals += (uint32_t)is_refusal(verdict);
    row = &rows[head.rows++];
    row->port = port;
    row->verdict = verdict;
    copy_text(row->host, sizeof row->host, host);
    copy_text(row->rule, sizeof row->rule, rule ? rule : "");
  }
  row->connections++;
  return row;
}

int rows_send(int socket) {
  if (write_all(socket, (const char *)&head, sizeof head) < 0) return -1;
  return write_all(socket, (const char *)rows, head.rows * sizeof *rows);
}
