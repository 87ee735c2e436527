#include "net/refused.h"

#include "net/hosts.h"
#include "lib/loop.h"
#include "net/verdicts.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGES_A_TURN 64

static struct source packets = {.fd = -1};

/* The start of an IPv4 packet with a TCP head. */
static void read_packet(const unsigned char *bytes, size_t size) {
  size_t head = size > 0 ? (size_t)(bytes[0] & 15) * 4 : 0;
  struct net_row *row;
  if (size < 20 || bytes[0] >> 4 != 4 || head < 20 || head + 4 > size) return;
  uint32_t to = (uint32_t)bytes[16] << 24 | (uint32_t)bytes[17] << 16 | (uint32_t)bytes[18] << 8 | bytes[19];
  struct address address = address_of_v4(to);
  uint16_t port = (uint16_t)(bytes[head + 2] << 8 | bytes[head + 3]);
  /* The rules that divert are made from those that judge: a port that they allow comes here only where nothing diverts it. */
  const struct host *host = hosts_find_by_stand_in(to);
  (void)verdict_of_connection(host ? host->name : NULL, &address, port, &row);
}

static void read_attributes(const unsigned char *bytes, size_t size) {
  while (size >= NLA_HDRLEN) {
    struct nlattr attribute;
    memcpy(&attribute, bytes, sizeof attribute);
    size_t length = attribute.nla_len, step = NLA_ALIGN(length);
    if (length < NLA_HDRLEN || length > size) return;
    if ((attribute.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) read_packet(bytes + NLA_HDRLEN, length - NLA_HDRLEN);
    if (step >= size) return;
    bytes += step, size -= step;
  }
}

void refused_read(const unsigned char *bytes, size_t size) {
  while (size >= NLMSG_HDRLEN) {
    struct nlmsghdr message;
    memcpy(&message, bytes, sizeof message);
    size_t length = message.nlmsg_len, step = NLMSG_ALIGN(length), head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
    if (length < NLMSG_HDRLEN || length > size) return;
    if (message.nlmsg_type == ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET) && length >= head) read_attributes(bytes + head, length - head);
    if (step >= size) return;
    bytes += step, size -= step;
  }
}

void refused_drain(void) {
  unsigned char bytes[8192];
  for (int i = 0; packets.fd >= 0 && i < MESSAGES_A_TURN; i++) {
    ssize_t got = recv(packets.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return; /* also ENOBUFS: some were lost, and a flood of refusals is on record anyway */
    refused_read(bytes, (size_t)got);
  }
}

static void on_packets(struct source *source, uint32_t events) {
  (void)source, (void)events;
  refused_drain();
}

int refused_on(int fd) {
  packets = (struct source){.fd = fd, .ready = on_packets};
  return loop_watch(&packets, EPOLLIN);
}
