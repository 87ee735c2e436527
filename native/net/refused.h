/* Connections that the kernel has refused inside, because their port is not listed: a log rule sends their first packets. */
#pragma once

#include <stddef.h>

/* Takes the netlink socket. -1 with errno. */
int refused_on(int fd);
/* Reports that have come by now. */
void refused_drain(void);
/* One netlink message, as far as it is one (for tests). */
void refused_read(const unsigned char *bytes, size_t size);
