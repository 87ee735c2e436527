#include "net/host-files.h"

#include "lib/launch-file.h"
#include "lib/report-failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LINE_BYTES 1024 /* more of a line is not looked at */
#define SPACE " \t\r\n"
#define TIMEOUT_S 2
#define TIMEOUT_MAX_S 30
#define ATTEMPTS 2
#define ATTEMPTS_MAX 5

/* A file that is not there is an empty one; one that cannot be read is none. */
static int open_file(const char *path, FILE **file) {
  *file = fopen(path, "re");
  return *file || errno == ENOENT ? 0 : -1;
}

static int close_file(FILE *file) {
  if (!file) return 0;
  int failed = ferror(file);
  fclose(file);
  return failed ? -1 : 0;
}

/* A line without its comment; NULL at the end. What is longer than the buffer is passed over. */
static char *next_line(FILE *file, char line[LINE_BYTES]) {
  if (!fgets(line, LINE_BYTES, file)) return NULL;
  if (!strchr(line, '\n'))
    for (int c = 0; c != '\n' && c != EOF;) c = fgetc(file);
  line[strcspn(line, "#;")] = 0;
  return line;
}

static unsigned number_of(const char *option, const char *name, unsigned most, unsigned otherwise) {
  uint64_t number;
  size_t length = strlen(name);
  if (strncmp(option, name, length) != 0 || parse_number(option + length, UINT32_MAX, &number) < 0 || number == 0) return otherwise;
  return number < most ? (unsigned)number : most;
}

static void read_options(char **rest, struct name_servers *servers) {
  for (char *option; (option = strtok_r(NULL, SPACE, rest));) {
    servers->timeout_ms = 1000 * number_of(option, "timeout:", TIMEOUT_MAX_S, servers->timeout_ms / 1000);
    servers->attempts = number_of(option, "attempts:", ATTEMPTS_MAX, servers->attempts);
  }
}

static void read_server(char **rest, struct name_servers *servers) {
  char *text = strtok_r(NULL, SPACE, rest);
  if (text && servers->count < NAME_SERVERS_MAX && address_parse(text, &servers->address[servers->count]) == 0) servers->count++;
}

int host_files_servers(struct name_servers *servers) {
  char line[LINE_BYTES], *rest;
  FILE *file;
  if (open_file("/etc/resolv.conf", &file) < 0) return -1;
  *servers = (struct name_servers){.timeout_ms = 1000 * TIMEOUT_S, .attempts = ATTEMPTS};
  while (file && next_line(file, line)) {
    const char *word = strtok_r(line, SPACE, &rest);
    if (word && strcmp(word, "nameserver") == 0) read_server(&rest, servers);
    if (word && strcmp(word, "options") == 0) read_options(&rest, servers);
  }
  if (servers->count == 0) servers->address[servers->count++] = address_of_v4(INADDR_LOOPBACK);
  return close_file(file);
}

static int is_named(char **rest, const char *name) {
  for (const char *word; (word = strtok_r(NULL, SPACE, rest));)
    if (strcasecmp(word, name) == 0) return 1;
  return 0;
}

int host_files_addresses(const char *name, struct address *addresses, int max) {
  char line[LINE_BYTES], *rest;
  int count = 0;
  FILE *file;
  if (open_file("/etc/hosts", &file) < 0) return -1;
  while (file && count < max && next_line(file, line)) {
    const char *address = strtok_r(line, SPACE, &rest);
    if (address && is_named(&rest, name) && address_parse(address, &addresses[count]) == 0) count++;
  }
  return close_file(file) < 0 ? -1 : count;
}
