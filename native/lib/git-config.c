#include "lib/git-config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reading {
  const unsigned char *at, *end;
  char *key, *value; /* each has room for the whole file */
  size_t key_length, section_length;
  git_config_value *on_value;
  void *data;
};

static int is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_of_key(int c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; }
static int is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static char lower(int c) { return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c); }
static int bad(void) { return errno = EBADMSG, -1; }

/* The end of the file ends a line, and so does CR LF. */
static int next(struct reading *reading) {
  if (reading->at >= reading->end) return reading->at++, '\n';
  int c = *reading->at++;
  if (c == '\r' && reading->at < reading->end && *reading->at == '\n') return reading->at++, '\n';
  return c;
}

static int is_over(const struct reading *reading) { return reading->at > reading->end; }

/* ---- [section "subsection"] ---- */

static int read_subsection(struct reading *reading) {
  int c = ' ';
  while (c == ' ' || c == '\t') c = next(reading);
  if (c != '"') return bad();
  reading->key[reading->key_length++] = '.';
  while ((c = next(reading)) != '"') {
    if (c == '\\') c = next(reading);
    if (c == '\n') return bad();
    reading->key[reading->key_length++] = (char)c;
  }
  return next(reading) == ']' ? 0 : bad();
}

static int read_section(struct reading *reading) {
  reading->key_length = 0;
  for (;;) {
    int c = next(reading);
    if (is_over(reading)) return bad();
    if (c == ']') break;
    if (is_space(c)) {
      reading->at--;
      if (read_subsection(reading) < 0) return -1;
      break;
    }
    if (!is_of_key(c) && c != '.') return bad();
    reading->key[reading->key_length++] = lower(c);
  }
  reading->key[reading->key_length++] = '.';
  reading->section_length = reading->key_length;
  return 0;
}

/* ---- name = value ---- */

static int escaped(int c) {
  switch (c) {
    case 't': return '\t';
    case 'b': return '\b';
    case 'n': return '\n';
    case '\\':
    case '"': return c;
    default: return -1;
  }
}

static int read_value(struct reading *reading) {
  size_t length = 0, kept = 0; /* without the blanks at the end */
  for (int is_quoted = 0, is_comment = 0;;) {
    int c = next(reading);
    if (c == '\n') {
      if (is_quoted) return bad();
      reading->value[kept] = 0;
      return 0;
    }
    if (is_comment) continue;
    if (!is_quoted && (c == ';' || c == '#')) {
      is_comment = 1;
      continue;
    }
    if (c == '"') {
      is_quoted = !is_quoted;
      kept = length;
      continue;
    }
    if (!is_quoted && is_space(c)) {
      if (length > 0) reading->value[length++] = (char)c;
      continue;
    }
    if (c == '\\') {
      c = next(reading);
      if (c == '\n') continue; /* a continued line */
      if ((c = escaped(c)) < 0) return bad();
    }
    reading->value[length++] = (char)c;
    kept = length;
  }
}

static int read_name(struct reading *reading, int c) {
  reading->key_length = reading->section_length;
  for (; is_of_key(c); c = next(reading)) reading->key[reading->key_length++] = lower(c);
  reading->key[reading->key_length] = 0;
  while (c == ' ' || c == '\t') c = next(reading);
  if (c == '\n') return reading->on_value(reading->data, reading->key, NULL);
  if (c != '=') return bad();
  return read_value(reading) < 0 ? -1 : reading->on_value(reading->data, reading->key, reading->value);
}

static int read_lines(struct reading *reading) {
  int is_comment = 0, done = 0;
  while (done == 0 && reading->at < reading->end) {
    int c = next(reading);
    if (c == '\n') is_comment = 0;
    else if (is_comment || is_space(c)) continue;
    else if (c == '#' || c == ';') is_comment = 1;
    else if (c == '[') done = read_section(reading);
    else done = is_letter(c) ? read_name(reading, c) : bad();
  }
  return done;
}

int git_config_read(const char *text, size_t size, git_config_value *on_value, void *data) {
  static const char MARK[] = "\xef\xbb\xbf";
  struct reading reading = {.at = (const unsigned char *)text, .end = (const unsigned char *)text + size, .on_value = on_value, .data = data};
  if (size >= 3 && memcmp(text, MARK, 3) == 0) reading.at += 3;
  /* A name stands behind its section, so both have room; the dots are those of the brackets. */
  reading.key = malloc(size + 4);
  reading.value = malloc(size + 4);
  int done = reading.key && reading.value ? read_lines(&reading) : -1;
  free(reading.key);
  free(reading.value);
  return done;
}
