/*
 * The inside of a restricted network. Its namespace has only lo. Each name has an address, and these addresses are local to it (a local
 * route, "AnyIP"); nftables diverts connections to the listed ports of them to one transparent listener (TPROXY). The sockets are
 * made here and given to the helper on the host: a socket stays in the namespace in which it was made, so none of our processes is needed
 * inside, and a command can reach nothing in here but the helper's judgement.
 *
 * A port that is not diverted is refused by the kernel at once, since the address is local and has no listener; the helper learns of it by
 * a log rule. Other protocols than TCP fail at once, too.
 *
 * Where the kernel has no nftables, an ordinary listener for each address and port takes their place, or one for all addresses where a
 * port is listed for a wildcard or a range: an accepted socket has the address that was dialled for its own in any case. The plan
 * lists them (src/network/listeners.ts), and the helper notices no difference.
 */
#pragma once

#include "lib/launch-file.h"
#include "lib/net-protocol.h"

int network_is_restricted(const struct launchfile *file);

int network_is_none(const struct launchfile *file);

/* The socket to which programs without network and without a resolv.conf send their questions (127.0.0.1:53, the default of every
 * resolver). Launch gets it, and starts the helper at the first question, which answers that the name does not exist and notes which it
 * was. Returns -1 where it cannot be made: names are not noted then. Needs CAP_NET_BIND_SERVICE. */
int network_open_names(void);

/* The sockets for the helper, in the order of `kinds`. */
struct network_sockets {
  struct net_sockets kinds;
  int fd[NET_SOCKETS_MAX];
};

/* Makes the network in the current network namespace; needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in it. A failure of this and of the
 * following ends the process with a report. */
void network_open(const struct launchfile *file, struct network_sockets *sockets);
/* Sends the sockets and closes them. `helper`: the socket of lib/net-protocol.h. */
void network_hand_over(const struct network_sockets *sockets, int helper);
/* Both. */
void network_make(const struct launchfile *file, int helper);
/* Returns when the helper has the sockets and is confined. */
void network_await_helper(int helper);
