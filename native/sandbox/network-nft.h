/*
 * Connections to the listed ports of a restricted sandbox's addresses, diverted to one transparent listener (TPROXY), whose accepted
 * sockets have the address that was dialled for their own. Batches of nf_tables and nfnetlink_log by hand.
 */
#pragma once

#include "lib/launch-file.h"

/* Both need CAP_NET_ADMIN in the current network namespace. */
void network_make_rules(const struct launchfile *file);
/* Returns a socket from which the first packets of connections that nothing diverts are read. */
int network_open_log(void);
