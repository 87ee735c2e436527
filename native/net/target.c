#include "net/target.h"

#include "lib/launch-file.h"

#include <stdio.h>
#include <string.h>

#define PORT_DIGITS_MAX 5

static int read_address(const char *text, size_t size, struct target *target) {
  char copy[ADDRESS_TEXT_MAX];
  if (size >= sizeof copy || memchr(text, 0, size)) return -1;
  memcpy(copy, text, size);
  copy[size] = 0;
  return address_parse(copy, &target->address);
}

int target_read_host(const char *text, size_t size, int is_bracketed, struct target *target) {
  int is_v6 = memchr(text, ':', size) != NULL;
  target->is_name = 0;
  if (is_bracketed && is_v6) {
    if (size < 2 || text[0] != '[' || text[size - 1] != ']') return -1;
    text++, size -= 2;
  }
  if (read_address(text, size, target) == 0) return 0;
  target->is_name = 1;
  return host_name_canonical(text, size, target->name);
}

static int read_port(const char *text, size_t size, uint16_t *port) {
  char digits[PORT_DIGITS_MAX + 1] = "";
  uint64_t number;
  if (size == 0 || size > PORT_DIGITS_MAX || text[0] == '0') return -1;
  memcpy(digits, text, size);
  if (strlen(digits) != size || parse_number(digits, UINT16_MAX, &number) < 0) return -1;
  return *port = (uint16_t)number, 0;
}

/* The colon before the port: behind the bracket of an IPv6 address. */
static const char *find_port(const char *text, size_t size) {
  const char *bracket = size > 0 && text[0] == '[' ? memchr(text, ']', size) : NULL, *from = bracket ? bracket : text;
  return memchr(from, ':', size - (size_t)(from - text));
}

int target_read(const char *text, size_t size, uint16_t otherwise, struct target *target) {
  const char *colon = find_port(text, size);
  size_t host = colon ? (size_t)(colon - text) : size;
  target->port = otherwise;
  if (colon ? read_port(colon + 1, size - host - 1, &target->port) < 0 : otherwise == 0) return -1;
  return target_read_host(text, host, 1, target);
}

void target_print(const struct target *target, uint16_t usual, char text[TARGET_TEXT_MAX]) {
  char address[ADDRESS_TEXT_MAX];
  if (!target->is_name) address_print(&target->address, address);
  int is_v6 = !target->is_name && !address_is_v4(&target->address);
  int size = snprintf(text, TARGET_TEXT_MAX, is_v6 ? "[%s]" : "%s", target->is_name ? target->name : address);
  if (target->port != usual) snprintf(text + size, TARGET_TEXT_MAX - (size_t)size, ":%u", target->port);
}
