/* Decides whether a host may be reached on a port: deny over allow, and a host without a rule is denied. The same judgement as
 * src/network/host-rule.ts; tests/network/judgements.yaml is the table of both. */
#pragma once

#include "lib/launch-file.h"
#include "net/address.h"

#define RULE_PORTS_MAX 4

struct rule {
  enum { RULE_NAME, RULE_BELOW, RULE_RANGE, RULE_ANY_NAME } kind;
  const char *name; /* without "*."; of every name: "*" */
  struct address_range range;
  int port_count; /* 0 = every port */
  uint16_t port[RULE_PORTS_MAX];
  const char *text; /* as the policy has it */
};

struct rules {
  struct rule *allow, *deny;
  size_t allow_count, deny_count;
};

#define RULES_ADDED_MAX 256

struct judgement {
  int is_allowed;
  const struct rule *rule; /* that decided; NULL = none covers the host */
};

/* The entries of a verb allow, those of net-deny deny. Words stay those of the file. Returns 0, or -1 with errno. */
int rules_read(const struct launchfile *file, enum verb allow, struct rules *rules);
/* One more, of the words of a net-allow entry, which are copied. NULL where they are none or there are too many. */
const struct rule *rules_add(struct rules *rules, const char *const word[3]);

/* `name`: canonical. */
struct judgement rules_judge_name(const struct rules *rules, const char *name, uint16_t port);
struct judgement rules_judge_address(const struct rules *rules, const struct address *address, uint16_t port);
/* Whether some port of the name is allowed; the rule is the one that denies all of it, if there is one. */
struct judgement rules_judge_any_port(const struct rules *rules, const char *name);
