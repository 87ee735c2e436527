/*
 * The name server of a sandbox, over UDP and TCP. A name that no rule allows does not exist (NXDOMAIN: programs give up at once, where
 * REFUSED or SERVFAIL would make them try again), and nothing of the question leaves this process. A name that is allowed is looked up
 * when it is asked for, so that one that does not exist, or leads to a private address, is not there inside either.
 */
#pragma once

/* Both take the descriptor. -1 with errno. */
int name_server_on_udp(int fd);
int name_server_on_tcp(int fd);
