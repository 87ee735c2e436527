/* What is reported of a run: one row for each host, port and verdict, the first NET_ROWS_MAX of them, of which at most half
 * are refusals. */
#pragma once

#include "lib/net-protocol.h"
#include "net/rules.h"

/* The row, with one connection (or question, or attempt) more; NULL when there are too many. `rule` may be NULL. */
struct net_row *rows_count(const char *host, uint16_t port, enum net_verdict verdict, const char *rule);
/* Writes head and rows. -1 with errno. */
int rows_send(int socket);
