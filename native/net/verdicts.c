#include "net/verdicts.h"

#include "net/own-address.h"
#include "net/rows.h"

static struct rules rules;

int verdicts_read(const struct launchfile *file) { return rules_read(file, V_NET_ALLOW, &rules); }

static const char *text_of(const struct rule *rule) { return rule ? rule->text : NULL; }

int verdicts_add(const char *const word[3], const char **denial) {
  const struct rule *rule = rules_add(&rules, word);
  if (!rule) return -1;
  struct judgement judgement = rules_judge_any_port(&rules, rule->name);
  if (rule->kind == RULE_NAME && !judgement.is_allowed) return *denial = text_of(judgement.rule), 0;
  (void)rows_count(word[0], 0, NET_GRANTED, rule->text);
  return 0;
}

int verdict_is_open(const char *name, uint16_t port) {
  struct judgement judgement = port ? rules_judge_name(&rules, name, port) : rules_judge_any_port(&rules, name);
  return !judgement.is_allowed && !judgement.rule;
}

static struct net_row *count_refusal(const char *host, uint16_t port, const struct judgement *judgement) {
  return rows_count(host, port, judgement->rule ? NET_DENIED : NET_NOT_LISTED, text_of(judgement->rule));
}

int verdict_of_question(const char *name) {
  struct judgement judgement = rules_judge_any_port(&rules, name);
  if (!judgement.is_allowed) count_refusal(name, 0, &judgement);
  return judgement.is_allowed;
}

struct judgement verdict_of_connection(const char *name, const struct address *address, uint16_t port, struct net_row **row) {
  char text[ADDRESS_TEXT_MAX];
  *row = NULL;
  /* A listener for all addresses takes such connections, too: dialled on the host, a listed 127.0.0.1 would be the host's. */
  if (!name && address_is_of_sandbox(address)) return (struct judgement){0, NULL};
  struct judgement judgement = name ? rules_judge_name(&rules, name, port) : rules_judge_address(&rules, address, port);
  if (!name) address_print(address, text);
  const char *shown = name ? name : text;
  if (judgement.is_allowed) *row = rows_count(shown, port, NET_ALLOWED, text_of(judgement.rule));
  else count_refusal(shown, port, &judgement);
  return judgement;
}

/* Listed for some port. */
static int is_listed(const struct address *address) {
  for (size_t i = 0; i < rules.allow_count; i++)
    if (rules.allow[i].kind == RULE_RANGE && address_is_within(address, &rules.allow[i].range)) return 1;
  return 0;
}

static int is_of_host(const struct address *address) {
  struct address v4;
  return address_is_own(address) || (address_embedded(address, &v4) && address_is_own(&v4));
}

static int is_open_to_names(const struct address *address) { return address_is_public(address) && !is_of_host(address); }

/* The row of a private address names it: it is what a rule would have to list. */
static void count_not_public(const struct host *host, const struct address *address, uint16_t port) {
  char text[ADDRESS_TEXT_MAX];
  address_print(address, text);
  rows_count(host->name, port, NET_NOT_PUBLIC, text);
}

void verdict_unresolved(const struct host *host) {
  struct judgement judgement = rules_judge_any_port(&rules, host->name);
  (void)rows_count(host->name, 0, NET_UNRESOLVED, text_of(judgement.rule));
}

int verdict_of_answer(const struct host *host) {
  if (host_is_open(host, 0)) return 1;
  for (int i = 0; i < host->count; i++)
    if (is_listed(&host->address[i]) || is_open_to_names(&host->address[i])) return 1;
  if (host->count > 0) count_not_public(host, &host->address[0], 0);
  return 0;
}

int verdict_of_address(const struct host *host, const struct address *address, uint16_t port) {
  struct judgement judgement = rules_judge_address(&rules, address, port);
  if (judgement.is_allowed) return 1;
  if (judgement.rule) return count_refusal(host->name, port, &judgement), 0;
  if (is_open_to_names(address) || host_is_open(host, port)) return 1;
  return count_not_public(host, address, port), 0;
}
