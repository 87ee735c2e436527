#include "net/socks-message.h"

#include <string.h>

#define NO_AUTHENTICATION 0
#define COMMAND_CONNECT 1

enum { ADDRESS_V4 = 1, ADDRESS_NAME = 3, ADDRESS_V6 = 4 };

int socks_read_greeting(const unsigned char *bytes, size_t size, int *is_open) {
  if (size > 0 && bytes[0] != SOCKS_VERSION) return -1;
  if (size < 2 || size < 2u + bytes[1]) return 0;
  *is_open = memchr(bytes + 2, NO_AUTHENTICATION, bytes[1]) != NULL;
  return 2 + bytes[1];
}

static void read_v4(const unsigned char *bytes, struct target *target) {
  target->is_name = 0;
  target->address = address_of_v4((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3]);
}

static void read_v6(const unsigned char *bytes, struct target *target) {
  target->is_name = 0;
  memcpy(target->address.bytes, bytes, sizeof target->address.bytes);
}

static size_t address_bytes(const unsigned char *bytes) {
  switch (bytes[3]) {
    case ADDRESS_V4: return 4;
    case ADDRESS_V6: return 16;
    case ADDRESS_NAME: return 1u + bytes[4];
    default: return 0;
  }
}

static enum socks_code read_target(const unsigned char *bytes, size_t size, struct target *target) {
  target->port = (uint16_t)(bytes[size - 2] << 8 | bytes[size - 1]);
  if (bytes[3] == ADDRESS_V4) read_v4(bytes + 4, target);
  else if (bytes[3] == ADDRESS_V6) read_v6(bytes + 4, target);
  else if (target_read_host((const char *)bytes + 5, bytes[4], 0, target) < 0) return SOCKS_FAILURE;
  return target->port ? SOCKS_SUCCEEDED : SOCKS_FAILURE;
}

int socks_read_request(const unsigned char *bytes, size_t size, struct target *target, enum socks_code *code) {
  if (size > 0 && bytes[0] != SOCKS_VERSION) return -1;
  if (size < 5) return 0;
  size_t address = address_bytes(bytes), whole = 4 + address + 2;
  if (bytes[2] != 0) return -1;
  *code = bytes[1] != COMMAND_CONNECT ? SOCKS_NO_COMMAND : SOCKS_NO_ADDRESS_TYPE;
  if (address == 0) return 5; /* no length is known, and nothing more is read */
  if (size < whole) return 0;
  if (bytes[1] == COMMAND_CONNECT) *code = read_target(bytes, whole, target);
  return (int)whole;
}

void socks_write_reply(enum socks_code code, char to[SOCKS_REPLY_BYTES]) {
  static const char bound[SOCKS_REPLY_BYTES] = {SOCKS_VERSION, 0, 0, ADDRESS_V4}; /* 0.0.0.0:0: no client needs our address */
  memcpy(to, bound, sizeof bound);
  to[1] = (char)code;
}
