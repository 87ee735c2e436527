/* Addresses of both families as 16 bytes: an IPv4 address is its mapped form (::ffff:a.b.c.d), so ranges of both compare alike. */
#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX INET6_ADDRSTRLEN

struct address {
  unsigned char bytes[16];
};

struct address_range {
  struct address first;
  unsigned length; /* bits of the prefix, of 128 */
};

extern const struct address ADDRESS_LOOPBACK[2]; /* 127.0.0.1 and ::1 */

/* `192.0.2.1`, `2001:db8::1`; -1 for anything else. */
int address_parse(const char *text, struct address *address);
/* `192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`; -1 for anything else. */
int address_parse_range(const char *text, struct address_range *range);
int address_is_within(const struct address *address, const struct address_range *range);
int address_is_v4(const struct address *address);
struct address address_of_v4(uint32_t host_order);
/* Of the last four bytes. */
uint32_t address_v4(const struct address *address);

/* The IPv4 address to which translators (NAT64, SIIT) or tunnels (6to4, automatic ones) take this IPv6 address; 0 where it is none of them. */
int address_embedded(const struct address *address, struct address *v4);
/* False for what is private, local, reserved or a group, and for an IPv6 form of an IPv4 address that is (mapped, NAT64, 6to4). */
int address_is_public(const struct address *address);
/* True for an address that means the sandbox itself there, or no host: it is never dialled as such (NET_OWN_RANGES). */
int address_is_of_sandbox(const struct address *address);

void address_print(const struct address *address, char text[ADDRESS_TEXT_MAX]);
/* IPv4 as such. Returns the size. */
socklen_t address_to_socket(const struct address *address, uint16_t port, struct sockaddr_storage *name);
/* Of the other end of a connection; 0 where there is none. */
uint16_t address_peer_port(int fd);
/* -1 for another family. */
int address_of_socket(const struct sockaddr *name, struct address *address, uint16_t *port);
