/* The report of a run: one row for each host, port and verdict, the first NET_ROWS_MAX of them, of which at most half
 * are refusals. */
#pragma once

#include "lib/net-protocol.h"
#include "net/rules.h"

/* The row, with one connection (or question, or attempt) more; NULL when there are too many. `rule` may be NULL. */
struct net_row *rows_count(const char *host, uint16_t port, enum net_verdict verdict, const char *rule);
/* Gets each count, and each end of a connection in a row; `source`: the port inside from which the command has connected. */
struct rows_watcher {
  void (*counted)(const char *host, uint16_t port, enum net_verdict verdict, const char *rule, uint16_t source);
  void (*ended)(const struct net_row *row, uint16_t source, uint64_t in, uint64_t out);
};
/* NULL = none from now on. */
void rows_watch(const struct rows_watcher *watcher);
/* The connection that is being judged; -1 = none. */
void rows_judge(int fd);
void rows_end(const struct net_row *row, int fd, uint64_t in, uint64_t out);
/* Writes head and rows. -1 with errno. */
int rows_send(int socket);
