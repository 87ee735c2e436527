/* Whether an address is this host's, whichever interface or route has it: the kernel is asked for its route. Nothing is sent. */
#pragma once

#include "net/address.h"

/* Must come before the walls, which forbid sockets of this kind. -1 with errno. */
int own_address_open(void);
/* True also for broadcast, for anycast, and where the kernel does not say. */
int address_is_own(const struct address *address);
