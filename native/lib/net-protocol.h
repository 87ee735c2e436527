/*
 * The protocol of the helper `net`, which acts for a restricted sandbox on the host's network (native/net/main.c), the process
 * that makes its sockets inside (sandbox/network.c), and launch (runner/net-helper.c) or, for a container,
 * tools/container-net.c, which starts it and gets its report.
 *
 *   inside ──struct net_sockets + descriptors──► net ──one byte: ready──► inside      SOCK_SEQPACKET
 *   launch ──end of file: report and end──► net ──struct net_report_head, rows──► launch   SOCK_STREAM
 */
#pragma once

#include "lib/contract.h"

#include <stdint.h>

/* Descriptors of net, besides /dev/null as 0-2. */
enum {
  NET_LAUNCH_FILE = 3, /* sealed memfd, read and closed */
  NET_CONTROL = 4,     /* launch's control socket: struct report of a step that failed; closed when the helper is ready */
  NET_INSIDE = 5,      /* the sockets come here */
  NET_REPORT = 6,
  NET_TERMINATOR = 7, /* the terminator's channel (net/terminator.h) */
  NET_GRANTS = 8,     /* a listener for the owner of the run (net/grants.h) */
  NET_DESCRIPTORS_END,
};

enum net_socket_kind {
  NET_SOCKET_DNS_UDP = 1,
  NET_SOCKET_DNS_TCP = 2,
  NET_SOCKET_DIVERTED = 3, /* accepts connections; their own address is the one that was dialled */
  NET_SOCKET_REFUSED = 4,  /* NETLINK_NETFILTER: first packets of connections that nothing diverts */
  NET_SOCKET_PROXY = 5,    /* HTTP */
  NET_SOCKET_SOCKS = 6,
  NET_SOCKET_STOCK = 7,    /* unbound and unconnected, for clients of published servers (net/publish.h) */
};

#define NET_SOCKETS_MAX 250 /* SCM_RIGHTS passes 253 at once */
#define NET_STOCK 64 /* of each family */

struct net_sockets {
  uint32_t count;
  uint32_t kind[NET_SOCKETS_MAX];
};

#define NET_HOST_MAX 254 /* a name or an address, with its NUL */
#define NET_RULE_MAX 272 /* a rule as the policy has it */
#define NET_ROWS_MAX 256

/* Counts of one host and port. */
struct net_row {
  char host[NET_HOST_MAX];
  uint16_t port; /* 0: only the name was asked for */
  uint32_t verdict; /* enum net_verdict */
  uint32_t connections; /* or questions, or attempts */
  uint64_t bytes_in, bytes_out; /* as the command sees it */
  char rule[NET_RULE_MAX]; /* that decided; empty without */
};

struct net_report_head {
  uint32_t rows;
  uint32_t omitted; /* more than fit */
};

/* The report of the network as launch has it when the run is over. */
struct net_report {
  struct net_report_head head;
  int is_lost; /* the helper has ended before it wrote one */
  struct net_row row[NET_ROWS_MAX];
};
