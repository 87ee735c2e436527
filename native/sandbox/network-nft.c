#include "sandbox/network-nft.h"

#include "lib/report-failure.h"
#include "sandbox/netlink.h"
#include "sandbox/network-addresses.h"
#include "sandbox/network-range.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <string.h>
#include <unistd.h>

#define LOG_GROUP 1
#define LOG_BYTES 64 /* IP and TCP heads */

#define STEP_RULES "network: nftables"
#define STEP_LOG "network: nflog"

static struct netlink request; /* too big for the stack */

/* ---- rules ---- */

#define TABLE "llm-do"

static void begin_nft(int family, uint16_t type, uint16_t flags) {
  struct nfgenmsg head = {.nfgen_family = (uint8_t)family, .version = NFNETLINK_V0};
  netlink_begin(&request, (NFNL_SUBSYS_NFTABLES << 8) | type, flags, &head, sizeof head);
}

static void put_batch_mark(uint16_t type) {
  struct nfgenmsg head = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
  netlink_begin(&request, type, 0, &head, sizeof head);
}

static void put_table(int family) {
  begin_nft(family, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  netlink_put_text(&request, NFTA_TABLE_NAME, TABLE);
}

static void put_chain(int family, const char *name, uint32_t hook, int priority) {
  begin_nft(family, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
  netlink_put_text(&request, NFTA_CHAIN_TABLE, TABLE);
  netlink_put_text(&request, NFTA_CHAIN_NAME, name);
  size_t nest = netlink_nest(&request, NFTA_CHAIN_HOOK);
  netlink_put_be32(&request, NFTA_HOOK_HOOKNUM, hook);
  netlink_put_be32(&request, NFTA_HOOK_PRIORITY, (uint32_t)priority);
  netlink_end(&request, nest);
  netlink_put_text(&request, NFTA_CHAIN_TYPE, "filter");
}

struct rule_nests {
  size_t expressions, expression, data;
};

static struct rule_nests begin_rule(int family, const char *chain) {
  begin_nft(family, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  netlink_put_text(&request, NFTA_RULE_TABLE, TABLE);
  netlink_put_text(&request, NFTA_RULE_CHAIN, chain);
  return (struct rule_nests){.expressions = netlink_nest(&request, NFTA_RULE_EXPRESSIONS)};
}

static void end_rule(const struct rule_nests *rule) { netlink_end(&request, rule->expressions); }

static void begin_expression(struct rule_nests *rule, const char *name) {
  rule->expression = netlink_nest(&request, NFTA_LIST_ELEM);
  netlink_put_text(&request, NFTA_EXPR_NAME, name);
  rule->data = netlink_nest(&request, NFTA_EXPR_DATA);
}

static void end_expression(const struct rule_nests *rule) {
  netlink_end(&request, rule->data);
  netlink_end(&request, rule->expression);
}

static void put_data(uint16_t attribute, const void *bytes, size_t size) {
  size_t nest = netlink_nest(&request, attribute);
  netlink_put(&request, NFTA_DATA_VALUE, bytes, size);
  netlink_end(&request, nest);
}

static void put_compare(struct rule_nests *rule, uint32_t operation, const void *bytes, size_t size) {
  begin_expression(rule, "cmp");
  netlink_put_be32(&request, NFTA_CMP_SREG, NFT_REG_1);
  netlink_put_be32(&request, NFTA_CMP_OP, operation);
  put_data(NFTA_CMP_DATA, bytes, size);
  end_expression(rule);
}

static void put_protocol(struct rule_nests *rule, uint32_t operation, uint8_t protocol) {
  begin_expression(rule, "meta");
  netlink_put_be32(&request, NFTA_META_DREG, NFT_REG_1);
  netlink_put_be32(&request, NFTA_META_KEY, NFT_META_L4PROTO);
  end_expression(rule);
  put_compare(rule, operation, &protocol, sizeof protocol);
}

static void put_load(struct rule_nests *rule, uint32_t base, uint32_t offset, size_t size) {
  begin_expression(rule, "payload");
  netlink_put_be32(&request, NFTA_PAYLOAD_DREG, NFT_REG_1);
  netlink_put_be32(&request, NFTA_PAYLOAD_BASE, base);
  netlink_put_be32(&request, NFTA_PAYLOAD_OFFSET, offset);
  netlink_put_be32(&request, NFTA_PAYLOAD_LEN, (uint32_t)size);
  end_expression(rule);
}

static void put_mask(struct rule_nests *rule, const void *mask, size_t size) {
  static const unsigned char nothing[16];
  begin_expression(rule, "bitwise");
  netlink_put_be32(&request, NFTA_BITWISE_SREG, NFT_REG_1);
  netlink_put_be32(&request, NFTA_BITWISE_DREG, NFT_REG_1);
  netlink_put_be32(&request, NFTA_BITWISE_LEN, (uint32_t)size);
  put_data(NFTA_BITWISE_MASK, mask, size);
  put_data(NFTA_BITWISE_XOR, nothing, size);
  end_expression(rule);
}

#define IPV4_DESTINATION 16
#define IPV6_DESTINATION 24

static void put_destination(struct rule_nests *rule, uint32_t operation, const struct range *range) {
  unsigned char mask[16] = {0};
  size_t size = range_bytes(range);
  for (unsigned bit = 0; bit < range->length; bit++) mask[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
  put_load(rule, NFT_PAYLOAD_NETWORK_HEADER, range->family == AF_INET ? IPV4_DESTINATION : IPV6_DESTINATION, size);
  if (range->length < 8 * size) put_mask(rule, mask, size);
  put_compare(rule, operation, range->bytes, size);
}

#define TCP_DESTINATION_PORT 2
#define TCP_FLAGS 13
#define TCP_SYN 0x02
#define TCP_ACK 0x10

static void put_port(struct rule_nests *rule, uint16_t port) {
  uint16_t ordered = htons(port);
  put_load(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_DESTINATION_PORT, sizeof ordered);
  put_compare(rule, NFT_CMP_EQ, &ordered, sizeof ordered);
}

static void put_flags(struct rule_nests *rule, uint8_t mask, uint8_t flags) {
  put_load(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, sizeof mask);
  put_mask(rule, &mask, sizeof mask);
  put_compare(rule, NFT_CMP_EQ, &flags, sizeof flags);
}

static void put_verdict(struct rule_nests *rule, uint32_t verdict) {
  begin_expression(rule, "immediate");
  netlink_put_be32(&request, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  size_t data = netlink_nest(&request, NFTA_IMMEDIATE_DATA), nest = netlink_nest(&request, NFTA_DATA_VERDICT);
  netlink_put_be32(&request, NFTA_VERDICT_CODE, verdict);
  netlink_end(&request, nest);
  netlink_end(&request, data);
  end_expression(rule);
}

static void put_immediate(struct rule_nests *rule, uint32_t reg, const void *bytes, size_t size) {
  begin_expression(rule, "immediate");
  netlink_put_be32(&request, NFTA_IMMEDIATE_DREG, reg);
  put_data(NFTA_IMMEDIATE_DATA, bytes, size);
  end_expression(rule);
}

/* Register 1 (16 bytes) gets the address, register 2 the port of the listener. */
static void put_tproxy(struct rule_nests *rule, int family) {
  struct range listener = range_parse(family == AF_INET ? NET_ADDRESS : NET_ADDRESS_V6);
  uint16_t port = htons(NET_DIVERT_PORT);
  put_immediate(rule, NFT_REG_1, listener.bytes, range_bytes(&listener));
  put_immediate(rule, NFT_REG_2, &port, sizeof port);
  begin_expression(rule, "tproxy");
  netlink_put_be32(&request, NFTA_TPROXY_FAMILY, family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
  netlink_put_be32(&request, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
  netlink_put_be32(&request, NFTA_TPROXY_REG_PORT, NFT_REG_2);
  end_expression(rule);
}

static void put_log(struct rule_nests *rule) {
  begin_expression(rule, "log");
  netlink_put_be16(&request, NFTA_LOG_GROUP, LOG_GROUP);
  netlink_put_be32(&request, NFTA_LOG_SNAPLEN, LOG_BYTES);
  netlink_put_be16(&request, NFTA_LOG_QTHRESHOLD, 1);
  end_expression(rule);
}

/* Packets of connections that exist have their socket. */
static void put_pass_established(int family) {
  struct rule_nests rule = begin_rule(family, "in");
  put_protocol(&rule, NFT_CMP_EQ, IPPROTO_TCP);
  put_flags(&rule, TCP_SYN, 0);
  put_verdict(&rule, NF_ACCEPT);
  end_rule(&rule);
}

static void put_divert(const struct entry *entry) {
  struct range range = range_parse(entry->word[0]);
  uint64_t port = 0;
  int any = strcmp(entry->word[1], "*") == 0;
  if (!any && (parse_number(entry->word[1], UINT16_MAX, &port) < 0 || port == 0)) fail_with(EINVAL, STEP_RULES, entry->word[1]);
  struct rule_nests rule = begin_rule(range.family, "in");
  put_protocol(&rule, NFT_CMP_EQ, IPPROTO_TCP);
  put_destination(&rule, NFT_CMP_EQ, &range);
  if (!any) put_port(&rule, (uint16_t)port);
  put_tproxy(&rule, range.family);
  put_verdict(&rule, NF_ACCEPT);
  end_rule(&rule);
}

static void put_diverts(const struct launchfile *file, int family) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(file, V_NET_DIVERT, &position, &entry))
    if (!strchr(entry.word[0], ':') == (family == AF_INET)) put_divert(&entry);
}

static void put_log_of_refused(const struct range *pool) {
  struct rule_nests rule = begin_rule(AF_INET, "in");
  put_protocol(&rule, NFT_CMP_EQ, IPPROTO_TCP);
  put_destination(&rule, NFT_CMP_EQ, pool);
  put_flags(&rule, TCP_SYN | TCP_ACK, TCP_SYN);
  put_log(&rule);
  end_rule(&rule);
}

/* UDP, ICMP and others to a name: an error for the sender at once, instead of silence. */
static void put_refusal_of_others(const struct range *pool) {
  struct range own = range_parse(NET_ADDRESS);
  struct rule_nests rule = begin_rule(AF_INET, "out");
  put_protocol(&rule, NFT_CMP_NEQ, IPPROTO_TCP);
  put_destination(&rule, NFT_CMP_EQ, pool);
  put_destination(&rule, NFT_CMP_NEQ, &own);
  put_verdict(&rule, NF_DROP);
  end_rule(&rule);
}

static void put_family(const struct launchfile *file, int family) {
  struct range pool = range_parse(NET_POOL);
  put_table(family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
  put_chain(family, "in", NF_INET_PRE_ROUTING, -150);
  put_pass_established(family);
  put_diverts(file, family);
  if (family != AF_INET) return;
  put_log_of_refused(&pool);
  put_chain(family, "out", NF_INET_LOCAL_OUT, 0);
  put_refusal_of_others(&pool);
}

void network_make_rules(const struct launchfile *file) {
  netlink_open(&request, NETLINK_NETFILTER, STEP_RULES);
  put_batch_mark(NFNL_MSG_BATCH_BEGIN);
  if (network_has_v6(file)) put_family(file, AF_INET6);
  put_family(file, AF_INET);
  netlink_acknowledge(&request); /* the last rule: kernels before 6.10 acknowledge no end of a batch */
  put_batch_mark(NFNL_MSG_BATCH_END);
  netlink_commit(&request);
  close(request.socket);
}

/* ---- log ---- */

/* Each packet at once: what was refused just before the end of a run is reported, too. */
int network_open_log(void) {
  struct nfgenmsg head = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(LOG_GROUP)};
  struct nfulnl_msg_config_cmd bind = {NFULNL_CFG_CMD_BIND};
  struct nfulnl_msg_config_mode mode = {.copy_range = htonl(LOG_BYTES), .copy_mode = NFULNL_COPY_PACKET};
  netlink_open(&request, NETLINK_NETFILTER, STEP_LOG);
  netlink_begin(&request, (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG, 0, &head, sizeof head);
  netlink_put(&request, NFULA_CFG_CMD, &bind, sizeof bind);
  netlink_put(&request, NFULA_CFG_MODE, &mode, sizeof mode);
  netlink_put_be32(&request, NFULA_CFG_QTHRESH, 1);
  netlink_acknowledge(&request);
  netlink_commit(&request);
  return request.socket;
}
