#include "net/dns-name.h"

#include <string.h>

#define LABEL_MAX 63
#define POINTER 0xc0
#define NAME_BYTES_MAX 255

uint16_t dns_get16(const unsigned char *at) { return (uint16_t)(at[0] << 8 | at[1]); }

size_t dns_put16(unsigned char *at, unsigned value) { return at[0] = (unsigned char)(value >> 8), at[1] = (unsigned char)value, 2; }

size_t dns_put_name(unsigned char *to, const char *name) {
  unsigned char *at = to;
  for (const char *label = name;; label++) {
    size_t length = strcspn(label, ".");
    *at++ = (unsigned char)length;
    memcpy(at, label, length);
    at += length, label += length;
    if (!*label) break;
  }
  *at++ = 0;
  return (size_t)(at - to);
}

int dns_read_name(const struct dns_bytes *message, size_t *at, int has_pointers, char name[DNS_NAME_TEXT]) {
  size_t from = *at, lowest = *at, length = 0, bytes = 1;
  int has_jumped = 0;
  for (;;) {
    if (from >= message->size) return -1;
    size_t label = message->bytes[from++];
    if (has_pointers && label >= POINTER) {
      if (from >= message->size) return -1;
      size_t to = (label & ~(size_t)POINTER) << 8 | message->bytes[from++];
      if (!has_jumped) *at = from;
      if (to >= lowest) return -1;
      has_jumped = 1, from = lowest = to;
      continue;
    }
    if (label == 0) break;
    bytes += label + 1;
    if (label > LABEL_MAX || label > message->size - from || bytes > NAME_BYTES_MAX) return -1;
    if (length > 0) name[length++] = '.';
    for (size_t i = 0; i < label; i++) {
      unsigned char c = message->bytes[from + i];
      name[length++] = c > ' ' && c < 0x7f && c != '.' ? (char)c : '?';
    }
    from += label;
  }
  if (!has_jumped) *at = from;
  name[length] = 0;
  return 0;
}
