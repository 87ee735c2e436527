/*
 * Unbound sockets that init's process has made inside, each for one client of a published server at a time. A socket whose connection is
 * over is used again, so their number is that of clients at once; as many again, of IPv6, are for servers that listen on ::1 alone.
 */
#pragma once

int stock_is_empty(void);
/* Adds a socket. -1 with errno. */
int stock_take(int fd);
/* One to connect by, of AF_INET or AF_INET6; -1 = none is left. */
int stock_use(int family);
/* The connection is over: its socket goes back. */
void stock_return(int fd);
