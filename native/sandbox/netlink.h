/* Netlink messages by hand: as much as a restricted network needs of libmnl. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NETLINK_BYTES_MAX (160u << 10)

struct netlink {
  int socket;
  const char *step; /* in reports of failures */
  uint32_t sequence; /* of the current message */
  uint32_t awaited;  /* of the message that is to be acknowledged */
  size_t size;
  size_t header; /* where the current message begins */
  _Alignas(8) char bytes[NETLINK_BYTES_MAX];
};

/* Failures of all of these end the process with a report. */
void netlink_open(struct netlink *link, int protocol, const char *step);
/* A message with the family's own head behind netlink's. */
void netlink_begin(struct netlink *link, uint16_t type, uint16_t flags, const void *head, size_t size);
void netlink_put(struct netlink *link, uint16_t attribute, const void *value, size_t size);
void netlink_put_u32(struct netlink *link, uint16_t attribute, uint32_t value);
/* For numbers that nfnetlink wants in network order. */
void netlink_put_be32(struct netlink *link, uint16_t attribute, uint32_t value);
void netlink_put_be16(struct netlink *link, uint16_t attribute, uint16_t value);
void netlink_put_text(struct netlink *link, uint16_t attribute, const char *text);
size_t netlink_nest(struct netlink *link, uint16_t attribute);
void netlink_end(struct netlink *link, size_t nest);
/* Asks for an answer to the current message. Errors of the others come unasked. */
void netlink_acknowledge(struct netlink *link);
/* Sends all messages at once and waits for that answer; an error of any message is a failure. */
void netlink_commit(struct netlink *link);
