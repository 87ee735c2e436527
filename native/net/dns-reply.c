#include "net/dns-reply.h"

#include <string.h>
#include <strings.h>

#define HEADER 12
#define CLASS_INTERNET 1
#define TYPE_CNAME 5
#define NAME_BYTES 256 /* as text, with its NUL */
#define ALIASES_MAX 16
#define RECORDS_MAX 256
#define IS_REPLY 0x8000
#define OPERATION 0x7800
#define TRUNCATED 0x0200
#define RECURSION_DESIRED 0x0100
#define CODE 0x000f

static uint16_t get16(const unsigned char *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static size_t put16(unsigned char *at, unsigned value) { return at[0] = (unsigned char)(value >> 8), at[1] = (unsigned char)value, 2; }

size_t dns_write_query(const struct dns_query *query, unsigned char to[DNS_QUERY_MAX]) {
  unsigned char *at = to;
  memset(to, 0, HEADER);
  put16(to, query->id), put16(to + 2, RECURSION_DESIRED), put16(to + 4, 1);
  at += HEADER;
  for (const char *label = query->name;; label++) {
    size_t length = strcspn(label, ".");
    *at++ = (unsigned char)length;
    memcpy(at, label, length);
    at += length, label += length;
    if (!*label) break;
  }
  *at++ = 0;
  at += put16(at, query->type);
  at += put16(at, CLASS_INTERNET);
  return (size_t)(at - to);
}

struct message {
  const unsigned char *bytes;
  size_t size;
};

/* A name as text, from `at`, which is moved behind it. Pointers lead backwards only, so there is an end. -1 for malformed names. */
static int read_name(const struct message *message, size_t *at, char name[NAME_BYTES]) {
  size_t from = *at, lowest = *at, length = 0;
  int has_jumped = 0;
  for (;;) {
    if (from >= message->size) return -1;
    size_t label = message->bytes[from++];
    if (label >= 0xc0) {
      if (from >= message->size) return -1;
      size_t to = (label & 0x3f) << 8 | message->bytes[from++];
      if (!has_jumped) *at = from;
      if (to >= lowest) return -1;
      has_jumped = 1, from = lowest = to;
      continue;
    }
    if (label > 63 || label > message->size - from || length + label + 1 >= NAME_BYTES) return -1;
    if (label == 0) break;
    if (length > 0) name[length++] = '.';
    for (size_t i = 0; i < label; i++) {
      unsigned char c = message->bytes[from + i];
      name[length++] = c > ' ' && c < 0x7f && c != '.' ? (char)c : '?'; /* no host name has such a byte, or '?' */
    }
    from += label;
  }
  if (!has_jumped) *at = from;
  name[length] = 0;
  return 0;
}

struct record {
  char owner[NAME_BYTES];
  uint16_t type, class;
  size_t data, size;
};

/* Moves `at` behind it. */
static int read_record(const struct message *message, size_t *at, struct record *record) {
  if (read_name(message, at, record->owner) < 0 || message->size - *at < 10) return -1;
  record->type = get16(message->bytes + *at), record->class = get16(message->bytes + *at + 2);
  record->size = get16(message->bytes + *at + 8);
  record->data = *at += 10;
  if (record->size > message->size - *at) return -1;
  *at += record->size;
  return 0;
}

/* It must be ours, in whichever case of letters. */
static int read_question(const struct message *message, size_t *at, const struct dns_query *query) {
  char name[NAME_BYTES];
  if (get16(message->bytes + 4) != 1 || read_name(message, at, name) < 0 || message->size - *at < 4) return -1;
  uint16_t type = get16(message->bytes + *at), class = get16(message->bytes + *at + 2);
  *at += 4;
  return strcasecmp(name, query->name) == 0 && type == query->type && class == CLASS_INTERNET ? 0 : -1;
}

static void keep_address(const struct message *message, const struct record *record, struct dns_reply *reply) {
  const unsigned char *data = message->bytes + record->data;
  struct address *address = &reply->address[reply->count];
  if (reply->count == HOST_ADDRESSES_MAX || record->size != (record->type == DNS_A ? 4u : 16u)) return;
  if (record->type == DNS_A) *address = address_of_v4((uint32_t)get16(data) << 16 | get16(data + 2));
  else memcpy(address->bytes, data, sizeof address->bytes);
  reply->count++;
}

/* One walk over the answers: keeps the addresses of `name`, and returns 1 where it is an alias, whose target takes its place. */
static int walk_answers(const struct message *message, size_t at, const struct dns_query *query, char name[NAME_BYTES], struct dns_reply *reply) {
  unsigned count = get16(message->bytes + 6);
  for (unsigned i = 0; i < count && i < RECORDS_MAX; i++) {
    struct record record;
    if (read_record(message, &at, &record) < 0) return 0; /* the rest is cut off, or was never there */
    if (record.class != CLASS_INTERNET || strcasecmp(record.owner, name) != 0) continue;
    if (record.type == query->type) keep_address(message, &record, reply);
    if (record.type == TYPE_CNAME && reply->count == 0) return read_name(message, &record.data, name) == 0;
  }
  return 0;
}

int dns_read_reply(const unsigned char *bytes, size_t size, const struct dns_query *query, struct dns_reply *reply) {
  const struct message message = {bytes, size};
  char name[NAME_BYTES];
  size_t at = HEADER;
  if (size < HEADER || get16(bytes) != query->id) return -1;
  uint16_t flags = get16(bytes + 2);
  if (!(flags & IS_REPLY) || flags & OPERATION || read_question(&message, &at, query) < 0) return -1;
  *reply = (struct dns_reply){.code = (enum dns_code)(flags & CODE), .is_truncated = (flags & TRUNCATED) != 0};
  memcpy(name, query->name, strlen(query->name) + 1);
  for (int i = 0; i < ALIASES_MAX && walk_answers(&message, at, query, name, reply); i++) continue;
  return 0;
}
