/* Judges by the rules of a launch file, for tests: judge FILE < LINES; each line is a host, a blank and a port. Prints `allowed` or `denied`
 * and the rule that decided, or `-`. */
#include "../native/load.h"
#include "net/host-name.h"
#include "net/rules.h"

static struct judgement judge(const struct rules *rules, const char *host, uint16_t port) {
  struct address_range address;
  char name[HOST_NAME_BYTES];
  if (address_parse_range(host, &address) == 0) return rules_judge_address(rules, &address.first, port);
  if (host_name_canonical(host, strlen(host), name) < 0) errx(1, "no host: %s", host);
  return rules_judge_name(rules, name, port);
}

int main(int argc, char **argv) {
  char host[256];
  unsigned port;
  if (argc != 2) errx(1, "usage: judge FILE");
  struct rules rules;
  struct launchfile file = load_launchfile(argv[1]);
  if (rules_read(&file, V_NET_ALLOW, &rules) < 0) err(1, "rules");
  while (scanf("%255s %u", host, &port) == 2) {
    struct judgement judgement = judge(&rules, host, (uint16_t)port);
    printf("%s %s\n", judgement.is_allowed ? "allowed" : "denied", judgement.rule ? judgement.rule->text : "-");
  }
  end(0);
}
