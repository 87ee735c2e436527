#include "net/own-address.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* Neither the source of a connection nor bind() would do: the first is another one of the host's for a secondary address and for a local
 * route (AnyIP), the second succeeds for every address where net.ipv4.ip_nonlocal_bind is set. */
static int kernel = -1;

struct request {
  struct nlmsghdr head;
  struct rtmsg route;
  struct rtattr attribute;
  unsigned char address[16];
};

struct reply {
  struct nlmsghdr head;
  union {
    struct rtmsg route;
    struct nlmsgerr error;
    char rest[4096];
  };
};

int own_address_open(void) {
  kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  return kernel < 0 ? -1 : 0;
}

static int ask(const struct address *address, struct reply *reply) {
  static uint32_t sequence;
  size_t skipped = address_is_v4(address) ? 12 : 0, bytes = sizeof address->bytes - skipped;
  struct request request = {
      .head = {.nlmsg_len = (uint32_t)(offsetof(struct request, address) + bytes), .nlmsg_type = RTM_GETROUTE,
               .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++sequence},
      .route = {.rtm_family = skipped ? AF_INET : AF_INET6, .rtm_dst_len = (unsigned char)(8 * bytes)},
      .attribute = {(unsigned short)RTA_LENGTH(bytes), RTA_DST}};
  memcpy(request.address, address->bytes + skipped, bytes);
  if (send(kernel, &request, request.head.nlmsg_len, 0) != (ssize_t)request.head.nlmsg_len) return -1;
  /* The kernel has answered when send returns. Answers to earlier questions, which were not read, come first. */
  do {
    if (recv(kernel, reply, sizeof *reply, 0) < (ssize_t)(sizeof reply->head + sizeof reply->route)) return -1;
  } while (reply->head.nlmsg_seq != sequence);
  return 0;
}

/* No route leads there, or the kernel lacks the whole family: no address of it is anybody's. */
static int leads_nowhere(const struct reply *reply, int is_v4) {
  int error = -reply->error.error;
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || (error == EOPNOTSUPP && !is_v4);
}

int address_is_own(const struct address *address) {
  struct reply reply;
  if (kernel < 0 || ask(address, &reply) < 0) return 1;
  if (reply.head.nlmsg_type == NLMSG_ERROR) return !leads_nowhere(&reply, address_is_v4(address));
  return reply.head.nlmsg_type != RTM_NEWROUTE || reply.route.rtm_type != RTN_UNICAST;
}
