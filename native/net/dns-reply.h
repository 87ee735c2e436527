/* Questions to the name servers of the host, and their replies (RFC 1035). Pure; the bytes of a reply are not trusted. */
#pragma once

#include "net/dns-message.h"
#include "net/hosts.h"

#include <stddef.h>
#include <stdint.h>

#define DNS_QUERY_MAX (12 + HOST_NAME_BYTES + 2 + 4)

struct dns_query {
  uint16_t id, type; /* DNS_A or DNS_AAAA */
  const char *name;  /* canonical */
};

/* Returns the size. */
size_t dns_write_query(const struct dns_query *query, unsigned char to[DNS_QUERY_MAX]);

struct dns_reply {
  enum dns_code code;
  int is_truncated;
  int count; /* of the addresses that the name has, over its aliases */
  struct address address[HOST_ADDRESSES_MAX];
};

/* -1 = not a reply to this question, or none that can be read. */
int dns_read_reply(const unsigned char *bytes, size_t size, const struct dns_query *query, struct dns_reply *reply);
