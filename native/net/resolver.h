/*
 * Names to addresses, as this host knows them: /etc/hosts, then the name servers of /etc/resolv.conf, in their order. A server that does
 * not answer, or answers that it failed, is followed by the next one.
 *
 * A reply counts only on the socket of its question, which is connected to the server and has a port of the kernel's choice, with the id
 * of the question, by chance too, and with the same question in it: off the path 32 bits have to be guessed. The case of letters is not
 * used for more, since servers that change it would answer nothing any more.
 */
#pragma once

#include "net/hosts.h"

/* Asks, unless that is under way or the answer is fresh, and tells the waiter; at once where it can. -1 = too many are being asked for. */
int resolver_ask(struct host *host, struct waiter *waiter);
/* The waiter is not told any more. */
void resolver_forget(struct host *host, const struct waiter *waiter);
