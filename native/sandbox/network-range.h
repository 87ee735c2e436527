/* Addresses of a restricted network, as its launch file has them: one address, or a range in CIDR notation. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct range {
  int family;
  unsigned length; /* of the prefix, bits */
  unsigned char bytes[16];
};

/* Text that is neither ends the process with a report. */
struct range range_parse(const char *text);
/* Of one address: 4 or 16. */
size_t range_bytes(const struct range *range);
int range_is_same(const struct range *a, const struct range *b);
/* Addresses that stand for names. */
int range_is_in_pool(const struct range *range);
/* The name of a socket at the first address. Returns its size. */
socklen_t range_socket_name(const struct range *range, uint16_t port, struct sockaddr_storage *name);
