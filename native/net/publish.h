/*
 * Servers inside that are reached from the host (V_NET_PUBLISH). The listener is the host's; each client gets one of the unbound sockets
 * that init's process has made inside, which is connected to the server there. A socket whose connection is over is used again, so their
 * number is that of clients at once; as many again, of IPv6, are for servers that listen on ::1 alone.
 */
#pragma once

#include "lib/launch-file.h"

/* Listens on the host. Must come before the walls, which forbid it. Fails the run with the address where a port cannot be had. */
void publish_listen(const struct launchfile *file);
/* A socket of the stock. -1 with errno. */
int publish_take_socket(int fd);
/* One to connect by, of AF_INET or AF_INET6; -1 = none is left. */
int publish_use_socket(int family);
/* The sandbox is ready: clients are taken from now on. -1 with errno. */
int publish_begin(void);
/* The connection is over: its socket goes back. */
void publish_return_socket(int fd);
