/* Configuration of this host's resolver: /etc/resolv.conf, without its search list, and /etc/hosts. Read anew each time, since both may
 * change while a sandbox runs. */
#pragma once

#include "net/address.h"

#include <stdint.h>
#include <sys/socket.h>

#define NAME_SERVERS_MAX 3

struct name_servers {
  int count; /* at least one: without any it is 127.0.0.1 */
  struct address address[NAME_SERVERS_MAX];
  unsigned timeout_ms, attempts; /* of one question to one server, and how often all are asked */
};

/* -1 = resolv.conf cannot be read, for another reason than that there is none. */
int host_files_servers(struct name_servers *servers);
/* Returns how many addresses /etc/hosts has for a canonical name, at most `max`; -1 as above. */
int host_files_addresses(const char *name, struct address *addresses, int max);
