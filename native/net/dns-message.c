#include "net/dns-message.h"

#include "net/dns-name.h"

#include <stdio.h>
#include <string.h>

#define TYPE_OPT 41
/* Seconds: short, since a listed name may move, and asking again costs next to nothing. */
#define TIME_TO_LIVE 5
#define EXTENDED_ERROR 15 /* the option, RFC 8914 */
#define ERROR_BLOCKED 15  /* and the one of its codes that means "by policy of the operator" */
#define OUR_SIZE 1232     /* what fits a packet everywhere, as DNS flag day 2020 has it */

/* ---- questions ---- */

/* A name of other bytes than host names have makes the question one about no host, but not the message wrong. */
static int read_name(const struct dns_bytes *message, size_t *at, struct dns_question *question) {
  char text[DNS_NAME_TEXT];
  if (dns_read_name(message, at, 0, text) < 0) return -1;
  question->is_host = host_name_canonical(text, strlen(text), question->name) == 0;
  if (!question->is_host) question->name[0] = 0;
  return 0;
}

/* The rest may hold one record, OPT of the root. */
static int read_additional(const unsigned char *bytes, size_t size, size_t at, struct dns_question *question) {
  for (unsigned count = dns_get16(bytes + 10); count > 0; count--) {
    if (at + 11 > size || bytes[at] != 0) return -1; /* a record with a name other than the root cannot be OPT, and we take no other */
    size_t data = dns_get16(bytes + at + 9);
    question->has_edns |= dns_get16(bytes + at + 1) == TYPE_OPT;
    at += 11;
    if (data > size - at) return -1;
    at += data;
  }
  return 0;
}

int dns_read_question(const unsigned char *bytes, size_t size, struct dns_question *question) {
  size_t at = DNS_HEADER;
  *question = (struct dns_question){0};
  if (size < DNS_HEADER || size > DNS_QUESTION_MAX || bytes[2] & 0x80) return -1; /* too small, or an answer itself */
  if (bytes[2] & 0x78) return DNS_NOT_IMPLEMENTED;
  if (dns_get16(bytes + 4) != 1 || dns_get16(bytes + 6) != 0 || dns_get16(bytes + 8) != 0) return DNS_FORMAT_ERROR;
  if (read_name(&(struct dns_bytes){bytes, size}, &at, question) < 0 || size - at < 4) return DNS_FORMAT_ERROR;
  question->type = dns_get16(bytes + at);
  uint16_t class = dns_get16(bytes + at + 2);
  at += 4;
  question->size = at - DNS_HEADER;
  if (read_additional(bytes, size, at, question) < 0) return DNS_FORMAT_ERROR;
  return class == DNS_CLASS_INTERNET ? DNS_NO_ERROR : DNS_REFUSED;
}

int dns_reverse_address(const char *name, uint32_t *address) {
  unsigned part[4];
  int end = 0;
  if (sscanf(name, "%3u.%3u.%3u.%3u.in-addr.arpa%n", &part[0], &part[1], &part[2], &part[3], &end) != 4 || end == 0 || name[end]) return -1;
  *address = 0;
  for (int i = 3; i >= 0; i--) {
    if (part[i] > 255) return -1;
    *address = *address << 8 | part[i];
  }
  return 0;
}

/* ---- answers ---- */

struct writer {
  unsigned char *bytes;
  size_t size;
};

static void put8(struct writer *to, unsigned value) { to->bytes[to->size++] = (unsigned char)value; }
static void put16(struct writer *to, unsigned value) { put8(to, value >> 8), put8(to, value); }
static void put32(struct writer *to, uint32_t value) { put16(to, value >> 16), put16(to, value & 0xffff); }

static void put_bytes(struct writer *to, const void *bytes, size_t size) {
  memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
}

/* A record about the name of the question, which is at offset 12. */
static void put_record_head(struct writer *to, uint16_t type) {
  put16(to, 0xc000 | DNS_HEADER);
  put16(to, type), put16(to, DNS_CLASS_INTERNET), put32(to, TIME_TO_LIVE);
}

static int put_answer(struct writer *to, const struct dns_question *question, const struct dns_answer *answer) {
  if (question->type == DNS_PTR && answer->name) {
    put_record_head(to, DNS_PTR);
    put16(to, (unsigned)strlen(answer->name) + 2), to->size += dns_put_name(to->bytes + to->size, answer->name);
    return 1;
  }
  if (!answer->address || (question->type != DNS_A && question->type != DNS_AAAA)) return 0;
  int is_v4 = question->type == DNS_A;
  if (is_v4 != address_is_v4(answer->address)) return 0;
  put_record_head(to, question->type);
  put16(to, is_v4 ? 4 : 16), put_bytes(to, answer->address->bytes + (is_v4 ? 12 : 0), is_v4 ? 4 : 16);
  return 1;
}

static void put_edns(struct writer *to, int is_blocked) {
  put8(to, 0), put16(to, TYPE_OPT), put16(to, OUR_SIZE), put32(to, 0);
  put16(to, is_blocked ? 6 : 0);
  if (is_blocked) put16(to, EXTENDED_ERROR), put16(to, 2), put16(to, ERROR_BLOCKED);
}

/* Question and name are at most 260 bytes each, so that everything fits. */
size_t dns_write_answer(const unsigned char *bytes, const struct dns_question *question, const struct dns_answer *answer,
                        unsigned char to[DNS_ANSWER_MAX]) {
  struct writer writer = {to, 0};
  put_bytes(&writer, bytes, 2);                                  /* id */
  put8(&writer, 0x80 | (bytes[2] & 0x79));                       /* an answer; opcode and "recursion desired" as they came */
  put8(&writer, 0x80 | answer->code);                            /* recursion is available */
  put16(&writer, question->size > 0), put16(&writer, 0), put16(&writer, 0), put16(&writer, question->has_edns ? 1 : 0);
  put_bytes(&writer, bytes + DNS_HEADER, question->size); /* letters in the case in which they came */
  to[7] = (unsigned char)(answer->code == DNS_NO_ERROR && put_answer(&writer, question, answer));
  if (question->has_edns) put_edns(&writer, answer->is_blocked);
  return writer.size;
}
