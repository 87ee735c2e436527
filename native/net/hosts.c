#include "net/hosts.h"

#include "lib/report-failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define BELOW_WILDCARDS_MAX 16384

struct wildcard {
  const char *below; /* the name without "*." */
  uint32_t first, count, used;
  struct host **host; /* by stand-in; made when the first one is placed */
};

static struct host *buckets[BUCKETS];
static struct host **listed; /* in the order of their stand-ins */
static size_t listed_count;
static struct wildcard *wildcards;
static size_t wildcard_count, below_wildcards;

static size_t bucket_of(const char *name) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
  return hash % BUCKETS;
}

static struct host *add_host(const char *name) {
  struct host *host = calloc(1, sizeof *host), **bucket = &buckets[bucket_of(name)];
  if (!host) return NULL;
  copy_text(host->name, sizeof host->name, name);
  host->next = *bucket;
  return *bucket = host;
}

/* ---- the plan ---- */

static int read_addresses(const char *text, uint32_t *first, uint32_t *count) {
  struct address_range range;
  if (address_parse_range(text, &range) < 0 || !address_is_v4(&range.first) || range.length < 112) return -1;
  *first = address_v4(&range.first);
  *count = 1u << (128 - range.length);
  return 0;
}

static int read_wildcard(const struct entry *entry) {
  struct wildcard *wildcard = &wildcards[wildcard_count++];
  wildcard->below = entry->word[1][1] ? entry->word[1] + 2 : ""; /* "*": every name, in a network that is recorded */
  return read_addresses(entry->word[0], &wildcard->first, &wildcard->count);
}

static int read_listed(const struct entry *entry) {
  char name[HOST_NAME_BYTES];
  uint32_t count;
  if (host_name_canonical(entry->word[1], strlen(entry->word[1]), name) < 0) return errno = EINVAL, -1;
  struct host *host = add_host(name);
  if (!host) return -1;
  listed[listed_count++] = host;
  return read_addresses(entry->word[0], &host->stand_in, &count);
}

/* Where a name leads. A name that no rule allows has no host, and needs none. */
static int read_planned(const struct entry *entry) {
  struct address address;
  struct host *host = hosts_find(entry->word[0]);
  if (address_parse(entry->word[1], &address) < 0) return errno = EINVAL, -1;
  if (!host) return 0;
  if (host->count == HOST_ADDRESSES_MAX) return errno = E2BIG, -1;
  host->address[host->count++] = address;
  host->state = HOST_FOUND;
  host->is_planned = 1;
  host->open_ports = strcmp(entry->word[2], "none") == 0 ? NULL : entry->word[2];
  return 0;
}

static int compare_stand_ins(const void *a, const void *b) {
  uint32_t first = (*(struct host *const *)a)->stand_in, second = (*(struct host *const *)b)->stand_in;
  return first < second ? -1 : first > second;
}

int hosts_read(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  listed = calloc(file->count + 1, sizeof *listed);
  wildcards = calloc(file->count + 1, sizeof *wildcards);
  if (!listed || !wildcards) return -1;
  errno = EINVAL;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb != V_NET_NAME) continue;
    if ((entry.word[1][0] == '*' ? read_wildcard : read_listed)(&entry) < 0) return -1;
  }
  qsort(listed, listed_count, sizeof *listed, compare_stand_ins);
  for (position = 0; launchfile_next(file, &position, &entry);)
    if (entry.verb == V_NET_HOST && read_planned(&entry) < 0) return -1;
  return 0;
}

/* ---- by name ---- */

static struct host *known_by(const char *name) {
  for (struct host *host = buckets[bucket_of(name)]; host; host = host->next)
    if (strcmp(host->name, name) == 0) return host;
  return NULL;
}

static int is_below(const char *name, const char *below) { return !*below || host_name_is_below(name, below); }

/* The longest: the plan has given it the ports of the others, too. */
static struct wildcard *wildcard_of(const char *name) {
  struct wildcard *best = NULL;
  for (size_t i = 0; i < wildcard_count; i++)
    if (is_below(name, wildcards[i].below) && (!best || strlen(wildcards[i].below) > strlen(best->below))) best = &wildcards[i];
  return best;
}

struct host *hosts_find(const char *name) {
  struct host *host = known_by(name);
  if (host) return host;
  struct wildcard *wildcard = wildcard_of(name);
  if (!wildcard || below_wildcards == BELOW_WILDCARDS_MAX || !(host = add_host(name))) return NULL;
  host->wildcard = wildcard;
  below_wildcards++;
  return host;
}

int host_is_open(const struct host *host, uint16_t port) {
  const char *next = host->open_ports;
  if (!next || port == 0) return next != NULL;
  for (char *end; *next; next = end) {
    if (strtoul(next, &end, 10) == port) return 1;
    if (end == next) return 0;
  }
  return 0;
}

/* ---- by stand-in ---- */

struct host *hosts_find_by_stand_in(uint32_t address) {
  struct host wanted = {.stand_in = address}, *key = &wanted;
  struct host **found = listed_count ? bsearch(&key, listed, listed_count, sizeof *listed, compare_stand_ins) : NULL;
  if (found) return *found;
  for (size_t i = 0; i < wildcard_count; i++)
    if (wildcards[i].host && address - wildcards[i].first < wildcards[i].used) return wildcards[i].host[address - wildcards[i].first];
  return NULL;
}

struct host *hosts_find_of_loopback(const struct address *address) {
  struct host *host = known_by("localhost");
  if (!host || !host->is_planned) return NULL;
  for (int i = 0; i < 2; i++)
    if (memcmp(address, &ADDRESS_LOOPBACK[i], sizeof *address) == 0) return host;
  return NULL;
}

int hosts_place(struct host *host) {
  struct wildcard *wildcard = host->wildcard;
  if (host->stand_in) return 0;
  if (!wildcard->host && !(wildcard->host = calloc(wildcard->count, sizeof *wildcard->host))) return -1;
  if (wildcard->used == wildcard->count) return -1;
  wildcard->host[wildcard->used] = host;
  host->stand_in = wildcard->first + wildcard->used++;
  return 0;
}

void hosts_release(struct host *host) {
  if (host->stand_in || host->waiters || host->state == HOST_ASKED || host->is_planned) return;
  struct host **at = &buckets[bucket_of(host->name)];
  while (*at != host) at = &(*at)->next;
  *at = host->next;
  below_wildcards--;
  free(host);
}
