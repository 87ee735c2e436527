/* Names and numbers in messages of the domain name system (RFC 1035). Pure; the bytes are not trusted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DNS_HEADER 12
#define DNS_CLASS_INTERNET 1
#define DNS_NAME_TEXT 256 /* with its NUL: of 255 bytes in a message 253 are text */

struct dns_bytes {
  const unsigned char *bytes;
  size_t size;
};

uint16_t dns_get16(const unsigned char *at);
/* Return the size. */
size_t dns_put16(unsigned char *at, unsigned value);
/* A canonical name takes two bytes more than its text has. */
size_t dns_put_name(unsigned char *at, const char *name);

/*
 * A name as text with dots, from `at`, which is moved behind it. A byte that is in no host name becomes '?', which is in none either. Pointers
 * of a reply lead backwards only, so there is an end; a question has none. -1 for a malformed name.
 */
int dns_read_name(const struct dns_bytes *message, size_t *at, int has_pointers, char name[DNS_NAME_TEXT]);
