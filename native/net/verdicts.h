/* Judges a host and its addresses by the rules; each judgement leaves its row for the report. */
#pragma once

#include "lib/net-protocol.h"
#include "net/hosts.h"
#include "net/rules.h"

/* -1 with errno. */
int verdicts_read(const struct launchfile *file);

/* Adds a rule that the owner allows (rules_add), and its row. -1: it is none, or there are too many; *denial: the rule that takes all of it,
 * or NULL. */
int verdicts_add(const char *const word[3], const char **denial);

/* Whether the name may be asked for at all. */
int verdict_of_question(const char *name);
/* Whether no rule speaks of this host on this port (0: on any), so that a person may be asked. */
int verdict_is_open(const char *name, uint16_t port);
/* Judges a connection to a name, or to this listed address (name NULL). `*row`: its row where it is allowed, else NULL. */
struct judgement verdict_of_connection(const char *name, const struct address *address, uint16_t port, struct net_row **row);
/* An allowed name for which this host has found no address. */
void verdict_unresolved(const struct host *host);
/* Whether one of the addresses of a host may be dialled; where none may, that is on record. */
int verdict_of_answer(const struct host *host);
/* Whether this address of an allowed host may be dialled: not where it is private or this host's own, unless a rule lists the address,
 * and not where a rule denies it. On record where it may not. */
int verdict_of_address(const struct host *host, const struct address *address, uint16_t port);
