#include "net/host-name.h"

#include <string.h>

#define LABEL_MAX 63

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_word(char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_'; }

static int is_label(const char *label, size_t size) {
  if (size == 0 || size > LABEL_MAX || !is_word(label[0]) || !is_word(label[size - 1])) return 0;
  for (size_t i = 0; i < size; i++)
    if (!is_word(label[i]) && label[i] != '-') return 0;
  return 1;
}

/* URL parsers and libc take a name with such an end for an IPv4 address in another spelling. */
static int is_number(const char *label) {
  int is_hex = label[0] == '0' && label[1] == 'x';
  for (label += is_hex ? 2 : 0; *label; label++)
    if (!is_digit(*label) && !(is_hex && *label >= 'a' && *label <= 'f')) return 0;
  return 1;
}

int host_name_canonical(const char *text, size_t size, char name[HOST_NAME_BYTES]) {
  if (size > 0 && text[size - 1] == '.') size--;
  if (size == 0 || size >= HOST_NAME_BYTES) return -1;
  for (size_t i = 0; i < size; i++) name[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
  name[size] = 0;
  size_t start = 0;
  for (size_t i = 0; i <= size; i++) {
    if (i < size && name[i] != '.') continue;
    if (!is_label(name + start, i - start)) return -1;
    if (i < size) start = i + 1;
  }
  return is_number(name + start) ? -1 : 0;
}

int host_name_is_below(const char *name, const char *above) {
  size_t length = strlen(name), end = strlen(above);
  return length > end + 1 && name[length - end - 1] == '.' && strcmp(name + length - end, above) == 0;
}
