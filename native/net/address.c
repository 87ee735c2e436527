#include "net/address.h"

#include "lib/launch-file.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

const struct address ADDRESS_LOOPBACK[2] = {{{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, {{[15] = 1}}};

int address_is_v4(const struct address *address) { return memcmp(address->bytes, MAPPED, sizeof MAPPED) == 0; }

struct address address_of_v4(uint32_t host_order) {
  struct address address;
  memcpy(address.bytes, MAPPED, sizeof MAPPED);
  for (int i = 0; i < 4; i++) address.bytes[12 + i] = (unsigned char)(host_order >> (24 - 8 * i));
  return address;
}

uint32_t address_v4(const struct address *address) {
  uint32_t host_order = 0;
  for (int i = 12; i < 16; i++) host_order = host_order << 8 | address->bytes[i];
  return host_order;
}

int address_parse(const char *text, struct address *address) {
  struct in_addr v4;
  if (inet_pton(AF_INET6, text, address->bytes) == 1) return 0;
  if (inet_pton(AF_INET, text, &v4) != 1) return -1;
  *address = address_of_v4(ntohl(v4.s_addr));
  return 0;
}

int address_parse_range(const char *text, struct address_range *range) {
  char address[ADDRESS_TEXT_MAX];
  size_t length = strcspn(text, "/");
  unsigned offset = strchr(text, ':') ? 0 : 96;
  uint64_t bits = 128 - offset;
  if (length >= sizeof address) return -1;
  memcpy(address, text, length);
  address[length] = 0;
  if (address_parse(address, &range->first) < 0 || (text[length] && parse_number(text + length + 1, bits, &bits) < 0)) return -1;
  range->length = (unsigned)bits + offset;
  return 0;
}

int address_is_within(const struct address *address, const struct address_range *range) {
  unsigned whole = range->length / 8, rest = range->length % 8;
  unsigned char mask = (unsigned char)(0xff00 >> rest);
  if (memcmp(address->bytes, range->first.bytes, whole) != 0) return 0;
  return rest == 0 || ((address->bytes[whole] ^ range->first.bytes[whole]) & mask) == 0;
}

/* The same forms as src/network/address.ts has. */
int address_embedded(const struct address *address, struct address *v4) {
  static const struct {
    const char *prefix;
    int at;
  } forms[] = {{"64:ff9b::/96", 12}, {"64:ff9b:1::/48", 12}, {"::ffff:0:0:0/96", 12}, {"::/96", 12}, {"2002::/16", 2}};
  struct address_range range;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (address_parse_range(forms[i].prefix, &range) < 0) abort();
    if (!address_is_within(address, &range) || address->bytes[forms[i].at] == 0) continue; /* 0.0.0.0/8 is not an address: "::1" is just that */
    memcpy(v4->bytes, MAPPED, sizeof MAPPED);
    memcpy(v4->bytes + 12, address->bytes + forms[i].at, 4);
    return 1;
  }
  return 0;
}

/* IANA's special-purpose registries, and multicast. */
static const struct {
  uint32_t first;
  unsigned length;
} NOT_PUBLIC_V4[] = {
    {0x00000000, 8},  /* this network */
    {0x0a000000, 8},  /* private */
    {0x64400000, 10}, /* carriers' NAT */
    {0x7f000000, 8},  /* loopback */
    {0xa9fe0000, 16}, /* link-local, and the metadata services of clouds */
    {0xa83f8110, 32}, /* 168.63.129.16: Azure's host, with its metadata */
    {0xac100000, 12}, /* private */
    {0xc0000000, 24}, /* protocol assignments */
    {0xc0000200, 24}, /* documentation */
    {0xc0586300, 24}, /* 6to4 relays */
    {0xc0a80000, 16}, /* private */
    {0xc6120000, 15}, /* benchmarks: our own stand-ins */
    {0xc6336400, 24}, /* documentation */
    {0xcb007100, 24}, /* documentation */
    {0xe0000000, 3},  /* multicast, reserved, broadcast */
};

static int is_public_v4(uint32_t address) {
  for (size_t i = 0; i < sizeof NOT_PUBLIC_V4 / sizeof *NOT_PUBLIC_V4; i++)
    if ((address ^ NOT_PUBLIC_V4[i].first) >> (32 - NOT_PUBLIC_V4[i].length) == 0) return 0;
  return 1;
}

static int starts_with(const struct address *address, const unsigned char *bytes, size_t size) { return memcmp(address->bytes, bytes, size) == 0; }

/* RFC 5214, 6.1: behind any prefix, an interface that takes packets to an IPv4 address of its site. */
static int is_isatap(const unsigned char *interface) {
  return (interface[0] & 0xfc) == 0 && interface[1] == 0 && interface[2] == 0x5e && interface[3] == 0xfe;
}

int address_is_public(const struct address *address) {
  static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b}, documentation[4] = {0x20, 0x01, 0x0d, 0xb8};
  const unsigned char *bytes = address->bytes;
  struct address v4;
  if (address_is_v4(address)) return is_public_v4(address_v4(address));
  if (address_embedded(address, &v4) && !is_public_v4(address_v4(&v4))) return 0;
  if (starts_with(address, nat64, sizeof nat64)) return address_embedded(address, &v4);
  if (is_isatap(bytes + 8)) return 0;
  if ((bytes[0] & 0xe0) != 0x20) return 0;                                        /* 2000::/3 is all that has been given out */
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return address_embedded(address, &v4); /* 6to4 */
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && (bytes[2] & 0xfe) == 0) return 0;   /* 2001::/23: Teredo, benchmarks, ORCHID */
  if (bytes[0] == 0x3f && bytes[1] == 0xff && (bytes[2] & 0xf0) == 0) return 0;   /* 3fff::/20: documentation */
  return !starts_with(address, documentation, sizeof documentation);
}

int address_is_of_sandbox(const struct address *address) {
  char ranges[] = NET_OWN_RANGES, *rest;
  struct address_range range;
  for (const char *text = strtok_r(ranges, " ", &rest); text; text = strtok_r(NULL, " ", &rest))
    if (address_parse_range(text, &range) < 0 || address_is_within(address, &range)) return 1;
  return 0;
}

void address_print(const struct address *address, char text[ADDRESS_TEXT_MAX]) {
  int is_v4 = address_is_v4(address);
  if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, address->bytes + (is_v4 ? 12 : 0), text, ADDRESS_TEXT_MAX)) text[0] = 0;
}

socklen_t address_to_socket(const struct address *address, uint16_t port, struct sockaddr_storage *name) {
  memset(name, 0, sizeof *name);
  if (address_is_v4(address)) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)name;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(address_v4(address))}};
    return sizeof *v4;
  }
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)name;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  memcpy(&v6->sin6_addr, address->bytes, sizeof address->bytes);
  return sizeof *v6;
}

int address_of_socket(const struct sockaddr *name, struct address *address, uint16_t *port) {
  if (name->sa_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)name;
    *address = address_of_v4(ntohl(v4->sin_addr.s_addr));
    *port = ntohs(v4->sin_port);
    return 0;
  }
  if (name->sa_family != AF_INET6) return -1;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)name;
  memcpy(address->bytes, &v6->sin6_addr, sizeof address->bytes);
  *port = ntohs(v6->sin6_port);
  return 0;
}

uint16_t address_peer_port(int fd) {
  struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
  struct address address;
  socklen_t size = sizeof name;
  uint16_t port;
  if (fd < 0 || getpeername(fd, (struct sockaddr *)&name, &size) < 0 || address_of_socket((struct sockaddr *)&name, &address, &port) < 0) return 0;
  return port;
}
