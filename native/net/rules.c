#include "net/rules.h"

#include "lib/report-failure.h"
#include "net/host-name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static int read_ports(const char *word, struct rule *rule) {
  char text[64], *rest = NULL;
  if (strcmp(word, "*") == 0) return 0;
  if (strlen(word) >= sizeof text) return -1;
  copy_text(text, sizeof text, word);
  for (char *port = strtok_r(text, " ", &rest); port; port = strtok_r(NULL, " ", &rest)) {
    uint64_t number;
    if (rule->port_count == RULE_PORTS_MAX || parse_number(port, UINT16_MAX, &number) < 0 || number == 0) return -1;
    rule->port[rule->port_count++] = (uint16_t)number;
  }
  return rule->port_count > 0 ? 0 : -1; /* none would mean every port */
}

static int read_rule(const struct entry *entry, struct rule *rule) {
  const char *pattern = entry->word[0];
  *rule = (struct rule){.kind = RULE_NAME, .name = pattern, .text = entry->word[2]};
  if (strncmp(pattern, "*.", 2) == 0) rule->kind = RULE_BELOW, rule->name = pattern + 2;
  else if (strcmp(pattern, "*") == 0) rule->kind = RULE_ANY_NAME;
  else if (address_parse_range(pattern, &rule->range) == 0) rule->kind = RULE_RANGE;
  return read_ports(entry->word[1], rule);
}

int rules_read(const struct launchfile *file, enum verb allow, struct rules *rules) {
  struct entry entry;
  size_t position = 0;
  *rules = (struct rules){.allow = calloc(file->count + 1, sizeof *rules->allow), .deny = calloc(file->count + 1, sizeof *rules->deny)};
  if (!rules->allow || !rules->deny) return -1;
  while (launchfile_next(file, &position, &entry)) {
    struct rule *rule = entry.verb == allow        ? &rules->allow[rules->allow_count++]
                        : entry.verb == V_NET_DENY ? &rules->deny[rules->deny_count++]
                                                   : NULL;
    if (rule && read_rule(&entry, rule) < 0) return errno = EINVAL, -1;
  }
  return 0;
}

static int is_pattern(const char *text) {
  char name[HOST_NAME_BYTES];
  struct address_range range;
  if (address_parse_range(text, &range) == 0) return 1;
  if (strncmp(text, "*.", 2) == 0) text += 2;
  return host_name_canonical(text, strlen(text), name) == 0 && strcmp(name, text) == 0;
}

const struct rule *rules_add(struct rules *rules, const char *const word[3]) {
  static size_t added;
  static char *words[RULES_ADDED_MAX][3]; /* a rule points into them */
  struct entry entry = {.verb = V_NET_ALLOW};
  struct rule rule, *all;
  if (added == RULES_ADDED_MAX || !is_pattern(word[0])) return NULL;
  for (int i = 0; i < 3; i++) {
    free(words[added][i]); /* of one that failed */
    if (!(words[added][i] = strdup(word[i]))) return NULL;
    entry.word[i] = words[added][i];
  }
  if (read_rule(&entry, &rule) < 0 || !(all = realloc(rules->allow, (rules->allow_count + 1) * sizeof *all))) return NULL;
  rules->allow = all;
  all[rules->allow_count] = rule;
  added++;
  return &all[rules->allow_count++];
}

/* ---- judging ---- */

static int covers_name(const struct rule *rule, const char *name) {
  if (rule->kind == RULE_ANY_NAME) return 1;
  if (rule->kind == RULE_NAME) return strcmp(name, rule->name) == 0;
  return rule->kind == RULE_BELOW && host_name_is_below(name, rule->name);
}

static int covers_port(const struct rule *rule, uint16_t port) {
  for (int i = 0; i < rule->port_count; i++)
    if (rule->port[i] == port) return 1;
  return rule->port_count == 0;
}

/* A host: a name, or an address. */
struct host {
  const char *name;
  const struct address *address;
};

static int covers(const struct rule *rule, const struct host *host) {
  if (host->name) return covers_name(rule, host->name);
  return rule->kind == RULE_RANGE && address_is_within(host->address, &rule->range);
}

/* A denied IPv4 address is denied in its IPv6 forms, too. */
static int denies(const struct rule *rule, const struct host *host) {
  struct address v4;
  if (covers(rule, host)) return 1;
  return host->address && address_embedded(host->address, &v4) && covers(rule, &(struct host){.address = &v4});
}

static const struct rule *find_denial(const struct rules *rules, const struct host *host, uint16_t port) {
  for (size_t i = 0; i < rules->deny_count; i++)
    if (denies(&rules->deny[i], host) && covers_port(&rules->deny[i], port)) return &rules->deny[i];
  return NULL;
}

static const struct rule *find_grant(const struct rules *rules, const struct host *host, uint16_t port) {
  for (size_t i = 0; i < rules->allow_count; i++)
    if (covers(&rules->allow[i], host) && covers_port(&rules->allow[i], port)) return &rules->allow[i];
  return NULL;
}

static struct judgement judge(const struct rules *rules, const struct host *host, uint16_t port) {
  const struct rule *denial = find_denial(rules, host, port);
  if (denial) return (struct judgement){0, denial};
  const struct rule *grant = find_grant(rules, host, port);
  return (struct judgement){grant != NULL, grant};
}

struct judgement rules_judge_name(const struct rules *rules, const char *name, uint16_t port) {
  return judge(rules, &(struct host){.name = name}, port);
}

struct judgement rules_judge_address(const struct rules *rules, const struct address *address, uint16_t port) {
  return judge(rules, &(struct host){.address = address}, port);
}

/* A rule for every port leaves some port, unless a deny rule takes all of them. */
static int allows_some_port(const struct rules *rules, const struct rule *grant, const char *name) {
  for (int i = 0; i < grant->port_count; i++)
    if (rules_judge_name(rules, name, grant->port[i]).is_allowed) return 1;
  if (grant->port_count > 0) return 0;
  for (size_t i = 0; i < rules->deny_count; i++)
    if (rules->deny[i].port_count == 0 && covers_name(&rules->deny[i], name)) return 0;
  return 1;
}

struct judgement rules_judge_any_port(const struct rules *rules, const char *name) {
  const struct host host = {.name = name};
  for (size_t i = 0; i < rules->allow_count; i++)
    if (covers_name(&rules->allow[i], name) && allows_some_port(rules, &rules->allow[i], name)) return (struct judgement){1, &rules->allow[i]};
  for (size_t i = 0; i < rules->deny_count; i++)
    if (covers(&rules->deny[i], &host)) return (struct judgement){0, &rules->deny[i]};
  return (struct judgement){0, NULL};
}
