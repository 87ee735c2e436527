/* Replies of name servers, or of impostors, to the helper: a reply is to our question, or is dropped. */
#include "net/dns-reply.h"
#include "fuzz.h"

static void read_as(const uint8_t *data, size_t size, const struct dns_query *query) {
  struct dns_reply reply;
  if (dns_read_reply(data, size, query, &reply) < 0) return;
  if (reply.count < 0 || reply.count > HOST_ADDRESSES_MAX) WRONG("count %d", reply.count);
  if (data[0] << 8 != (query->id & 0xff00) || !(data[2] & 0x80)) WRONG("a reply to another question: %u", query->id);
  for (int i = 0; i < reply.count; i++)
    if (query->type == DNS_A && !address_is_v4(&reply.address[i])) WRONG("address %d of another family", i);
}

/* A query is never taken for its own reply; with the bit of a reply it is one, and empty. */
static void check_query(const struct dns_query *query) {
  unsigned char bytes[DNS_QUERY_MAX];
  struct dns_reply reply;
  size_t size = dns_write_query(query, bytes);
  if (size > sizeof bytes || dns_read_reply(bytes, size, query, &reply) == 0) WRONG("size %zu", size);
  bytes[2] |= 0x80;
  if (dns_read_reply(bytes, size, query, &reply) < 0 || reply.count != 0) WRONG("not its own: %s", query->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char name[HOST_NAME_BYTES];
  uint16_t id = size < 2 ? 0 : (uint16_t)(data[0] << 8 | data[1]);
  read_as(data, size, &(struct dns_query){id, DNS_A, "a.test"});
  read_as(data, size, &(struct dns_query){id, DNS_AAAA, "a.test"});
  if (host_name_canonical((const char *)data, size, name) == 0) check_query(&(struct dns_query){id, DNS_A, name});
  return 0;
}
