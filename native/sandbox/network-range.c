#include "sandbox/network-range.h"

#include "lib/contract.h"
#include "lib/launch-file.h"
#include "lib/report-failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define STEP "network: addresses"

size_t range_bytes(const struct range *range) { return range->family == AF_INET ? 4 : 16; }

struct range range_parse(const char *text) {
  struct range range = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
  char address[INET6_ADDRSTRLEN];
  const char *slash = strchr(text, '/');
  size_t length = slash ? (size_t)(slash - text) : strlen(text);
  uint64_t bits = 8 * range_bytes(&range);
  if (length >= sizeof address) fail_with(EINVAL, STEP, text);
  memcpy(address, text, length);
  address[length] = 0;
  if (inet_pton(range.family, address, range.bytes) != 1 || (slash && parse_number(slash + 1, bits, &bits) < 0))
    fail_with(EINVAL, STEP, text);
  range.length = (unsigned)bits;
  return range;
}

int range_is_same(const struct range *a, const struct range *b) {
  return a->family == b->family && a->length == b->length && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

int range_is_in_pool(const struct range *range) {
  struct range pool = range_parse(NET_POOL);
  return range->family == AF_INET && range->bytes[0] == pool.bytes[0] && (range->bytes[1] & 0xfe) == pool.bytes[1];
}

socklen_t range_socket_name(const struct range *range, uint16_t port, struct sockaddr_storage *to) {
  if (range->family == AF_INET) {
    struct sockaddr_in *name = (struct sockaddr_in *)to;
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&name->sin_addr, range->bytes, 4);
    return sizeof *name;
  }
  struct sockaddr_in6 *name = (struct sockaddr_in6 *)to;
  *name = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
  memcpy(&name->sin6_addr, range->bytes, 16);
  return sizeof *name;
}
