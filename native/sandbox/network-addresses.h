/* The addresses of a restricted sandbox: its own, those that stand for names, and those that are listed. All are local to it ("AnyIP"). */
#pragma once

#include "lib/launch-file.h"

/* Whether IPv6 addresses are listed. */
int network_has_v6(const struct launchfile *file);
/* Needs CAP_NET_ADMIN in the current network namespace. */
void network_make_addresses(const struct launchfile *file);
