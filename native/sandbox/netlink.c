#include "sandbox/netlink.h"

#include "lib/report-failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void netlink_open(struct netlink *link, int protocol, const char *step) {
  link->step = step;
  link->sequence = 0;
  link->size = link->header = 0;
  link->socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (link->socket < 0) fail(step, "netlink socket");
}

/* Space for `size` bytes at the next multiple of four, all zero. */
static char *extend(struct netlink *link, size_t size) {
  size_t start = NLMSG_ALIGN(link->size), end = start + NLMSG_ALIGN(size);
  if (size > NETLINK_BYTES_MAX || end > sizeof link->bytes) fail_with(E2BIG, link->step, "netlink message");
  memset(link->bytes + link->size, 0, end - link->size);
  link->size = start + size;
  return link->bytes + start;
}

static void update_length(struct netlink *link) {
  struct nlmsghdr *header = (struct nlmsghdr *)(void *)(link->bytes + link->header);
  link->size = NLMSG_ALIGN(link->size);
  header->nlmsg_len = (uint32_t)(link->size - link->header);
}

void netlink_begin(struct netlink *link, uint16_t type, uint16_t flags, const void *head, size_t size) {
  struct nlmsghdr *header = (struct nlmsghdr *)(void *)extend(link, sizeof *header);
  link->header = (size_t)((char *)header - link->bytes);
  *header = (struct nlmsghdr){.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = ++link->sequence};
  memcpy(extend(link, size), head, size);
  update_length(link);
}

void netlink_put(struct netlink *link, uint16_t attribute, const void *value, size_t size) {
  struct nlattr head = {(uint16_t)(NLA_HDRLEN + size), attribute};
  char *place = extend(link, NLA_HDRLEN + size);
  memcpy(place, &head, sizeof head);
  memcpy(place + NLA_HDRLEN, value, size);
  update_length(link);
}

void netlink_put_u32(struct netlink *link, uint16_t attribute, uint32_t value) { netlink_put(link, attribute, &value, sizeof value); }

void netlink_put_be32(struct netlink *link, uint16_t attribute, uint32_t value) { netlink_put_u32(link, attribute, htonl(value)); }

void netlink_put_be16(struct netlink *link, uint16_t attribute, uint16_t value) {
  uint16_t ordered = htons(value);
  netlink_put(link, attribute, &ordered, sizeof ordered);
}

void netlink_put_text(struct netlink *link, uint16_t attribute, const char *text) { netlink_put(link, attribute, text, strlen(text) + 1); }

size_t netlink_nest(struct netlink *link, uint16_t attribute) {
  size_t nest = link->size;
  netlink_put(link, attribute | NLA_F_NESTED, "", 0);
  return nest;
}

void netlink_end(struct netlink *link, size_t nest) {
  struct nlattr *head = (struct nlattr *)(void *)(link->bytes + nest);
  if (link->size - nest > UINT16_MAX) fail_with(E2BIG, link->step, "netlink attribute");
  head->nla_len = (uint16_t)(link->size - nest);
}

/* Returns 1 once the awaited one is there. */
static int read_acknowledgements(const struct netlink *link) {
  _Alignas(8) char bytes[8192];
  ssize_t got = recv(link->socket, bytes, sizeof bytes, 0);
  if (got < 0) fail(link->step, "netlink answer");
  unsigned left = (unsigned)got;
  for (struct nlmsghdr *header = (struct nlmsghdr *)(void *)bytes; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
    const struct nlmsgerr *error = NLMSG_DATA(header);
    if (header->nlmsg_type != NLMSG_ERROR) continue;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *error)) fail_with(EBADMSG, link->step, "netlink answer");
    if (error->error) fail_with(-error->error, link->step, "netlink request");
    if (header->nlmsg_seq == link->awaited) return 1;
  }
  return 0;
}

void netlink_acknowledge(struct netlink *link) {
  struct nlmsghdr *header = (struct nlmsghdr *)(void *)(link->bytes + link->header);
  header->nlmsg_flags |= NLM_F_ACK;
  link->awaited = header->nlmsg_seq;
}

void netlink_commit(struct netlink *link) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  if (sendto(link->socket, link->bytes, link->size, 0, (struct sockaddr *)&kernel, sizeof kernel) != (ssize_t)link->size)
    fail(link->step, "netlink request");
  while (!read_acknowledgements(link)) continue;
  link->size = 0;
}
