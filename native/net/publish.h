/*
 * Servers inside that are reached from the host (V_NET_PUBLISH). The listener is the host's; each client gets a socket of the stock
 * (net/stock.h), which is connected to the server inside.
 */
#pragma once

#include "lib/launch-file.h"

/* Listens on the host. Must come before the walls, which forbid it. Fails the run with the address where a port cannot be had. */
void publish_listen(const struct launchfile *file);
/* The sandbox is ready: clients are taken from now on. -1 with errno. */
int publish_begin(void);
