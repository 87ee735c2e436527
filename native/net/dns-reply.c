#include "net/dns-reply.h"

#include "net/dns-name.h"

#include <string.h>
#include <strings.h>

#define TYPE_CNAME 5
#define ALIASES_MAX 16
#define RECORDS_MAX 256
#define IS_REPLY 0x8000
#define OPERATION 0x7800
#define TRUNCATED 0x0200
#define RECURSION_DESIRED 0x0100
#define CODE 0x000f

size_t dns_write_query(const struct dns_query *query, unsigned char to[DNS_QUERY_MAX]) {
  unsigned char *at = to;
  memset(to, 0, DNS_HEADER);
  dns_put16(to, query->id), dns_put16(to + 2, RECURSION_DESIRED), dns_put16(to + 4, 1);
  at += DNS_HEADER;
  at += dns_put_name(at, query->name);
  at += dns_put16(at, query->type);
  at += dns_put16(at, DNS_CLASS_INTERNET);
  return (size_t)(at - to);
}

struct record {
  char owner[DNS_NAME_TEXT];
  uint16_t type, class;
  size_t data, size;
};

/* Moves `at` behind it. */
static int read_record(const struct dns_bytes *message, size_t *at, struct record *record) {
  if (dns_read_name(message, at, 1, record->owner) < 0 || message->size - *at < 10) return -1;
  record->type = dns_get16(message->bytes + *at), record->class = dns_get16(message->bytes + *at + 2);
  record->size = dns_get16(message->bytes + *at + 8);
  record->data = *at += 10;
  if (record->size > message->size - *at) return -1;
  *at += record->size;
  return 0;
}

/* It must be ours, in whichever case of letters. */
static int read_question(const struct dns_bytes *message, size_t *at, const struct dns_query *query) {
  char name[DNS_NAME_TEXT];
  if (dns_get16(message->bytes + 4) != 1 || dns_read_name(message, at, 1, name) < 0 || message->size - *at < 4) return -1;
  uint16_t type = dns_get16(message->bytes + *at), class = dns_get16(message->bytes + *at + 2);
  *at += 4;
  return strcasecmp(name, query->name) == 0 && type == query->type && class == DNS_CLASS_INTERNET ? 0 : -1;
}

static void keep_address(const struct dns_bytes *message, const struct record *record, struct dns_reply *reply) {
  const unsigned char *data = message->bytes + record->data;
  struct address *address = &reply->address[reply->count];
  if (reply->count == HOST_ADDRESSES_MAX || record->size != (record->type == DNS_A ? 4u : 16u)) return;
  if (record->type == DNS_A) *address = address_of_v4((uint32_t)dns_get16(data) << 16 | dns_get16(data + 2));
  else memcpy(address->bytes, data, sizeof address->bytes);
  reply->count++;
}

/* One walk over the answers: keeps the addresses of `name`, and returns 1 where it is an alias, whose target takes its place. */
static int walk_answers(const struct dns_bytes *message, size_t at, const struct dns_query *query, char name[DNS_NAME_TEXT], struct dns_reply *reply) {
  unsigned count = dns_get16(message->bytes + 6);
  for (unsigned i = 0; i < count && i < RECORDS_MAX; i++) {
    struct record record;
    if (read_record(message, &at, &record) < 0) return 0; /* the rest is cut off, or was never there */
    if (record.class != DNS_CLASS_INTERNET || strcasecmp(record.owner, name) != 0) continue;
    if (record.type == query->type) keep_address(message, &record, reply);
    if (record.type == TYPE_CNAME && reply->count == 0) return dns_read_name(message, &record.data, 1, name) == 0;
  }
  return 0;
}

int dns_read_reply(const unsigned char *bytes, size_t size, const struct dns_query *query, struct dns_reply *reply) {
  const struct dns_bytes message = {bytes, size};
  char name[DNS_NAME_TEXT];
  size_t at = DNS_HEADER;
  if (size < DNS_HEADER || dns_get16(bytes) != query->id) return -1;
  uint16_t flags = dns_get16(bytes + 2);
  if (!(flags & IS_REPLY) || flags & OPERATION || read_question(&message, &at, query) < 0) return -1;
  *reply = (struct dns_reply){.code = (enum dns_code)(flags & CODE), .is_truncated = (flags & TRUNCATED) != 0};
  memcpy(name, query->name, strlen(query->name) + 1);
  for (int i = 0; i < ALIASES_MAX && walk_answers(&message, at, query, name, reply); i++) continue;
  return 0;
}
