#include "sandbox/network-addresses.h"

#include "sandbox/netlink.h"
#include "sandbox/network-range.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

/* net/if.h and linux/if.h exclude each other. */
#define LOOPBACK_INDEX 1 /* the first interface of every namespace */
#define INTERFACE_UP 1   /* IFF_UP */

#define STEP "network: addresses"

static struct netlink request; /* too big for the stack */

int network_has_v6(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(file, V_NET_DIVERT, &position, &entry))
    if (strchr(entry.word[0], ':')) return 1;
  return 0;
}

static void put_loopback_up(void) {
  struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK_INDEX, .ifi_flags = INTERFACE_UP, .ifi_change = INTERFACE_UP};
  netlink_begin(&request, RTM_NEWLINK, 0, &head, sizeof head);
}

/* With global scope: without such an address getaddrinfo() (AI_ADDRCONFIG) takes the machine to have no network. */
static void put_own_address(const char *text) {
  struct range own = range_parse(text);
  struct ifaddrmsg head = {.ifa_family = (uint8_t)own.family, .ifa_prefixlen = (uint8_t)own.length, .ifa_scope = RT_SCOPE_UNIVERSE,
                           .ifa_index = LOOPBACK_INDEX, .ifa_flags = own.family == AF_INET6 ? IFA_F_NODAD : 0};
  netlink_begin(&request, RTM_NEWADDR, NLM_F_CREATE, &head, sizeof head);
  netlink_put(&request, IFA_LOCAL, own.bytes, range_bytes(&own));
  netlink_put(&request, IFA_ADDRESS, own.bytes, range_bytes(&own));
}

/* All addresses of the range are our own. Without the source a connection would come from the address that it goes to, and could
 * meet itself. */
static void put_local_route(const struct range *range) {
  struct range source = range_parse(range->family == AF_INET ? NET_ADDRESS : NET_ADDRESS_V6);
  struct rtmsg head = {.rtm_family = (uint8_t)range->family, .rtm_dst_len = (uint8_t)range->length, .rtm_table = RT_TABLE_LOCAL,
                       .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL};
  netlink_begin(&request, RTM_NEWROUTE, NLM_F_CREATE, &head, sizeof head);
  netlink_put(&request, RTA_DST, range->bytes, range_bytes(range));
  netlink_put(&request, RTA_PREFSRC, source.bytes, range_bytes(&source));
  netlink_put_u32(&request, RTA_OIF, LOOPBACK_INDEX);
}

/* The same range comes once for each of its ports, one behind the other. */
static void put_listed_routes(const struct launchfile *file) {
  struct entry entry;
  struct range last = {.family = AF_UNSPEC};
  size_t position = 0;
  while (launchfile_next_of(file, V_NET_DIVERT, &position, &entry)) {
    struct range range = range_parse(entry.word[0]);
    if (!range_is_in_pool(&range) && !range_is_same(&range, &last)) put_local_route(&range);
    last = range;
  }
}

void network_make_addresses(const struct launchfile *file) {
  struct range pool = range_parse(NET_POOL);
  netlink_open(&request, NETLINK_ROUTE, STEP);
  put_loopback_up();
  put_own_address(NET_ADDRESS);
  if (network_has_v6(file)) put_own_address(NET_ADDRESS_V6);
  put_local_route(&pool);
  put_listed_routes(file);
  netlink_acknowledge(&request);
  netlink_commit(&request);
  close(request.socket);
}
