#include "lib/hide.h"

#include "lib/arena.h"
#include "lib/report-failure.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hide_read(struct hide *hide, const struct launchfile *file, const struct entry *zone) {
  struct entry entry;
  size_t position = zone->next;
  *hide = (struct hide){.source = zone->word[0]};
  while (launchfile_next(file, &position, &entry) && entry.verb != V_ZONE)
    if (entry.verb == V_HIDE && append(hide->pattern, hide->patterns, &entry.word[2]) < 0) return -1;
  return 0;
}

void hide_free(struct hide *hide) {
  free(hide->pattern);
  *hide = (struct hide){0};
}

/* FNV-1a (RFC 9923), with the NUL at the end of the text. */
static uint64_t add_sum(uint64_t sum, const char *text) {
  for (size_t i = 0; i <= strlen(text); i++) sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3ull;
  return sum;
}

uint64_t hide_sum(const struct hide *hide) {
  if (!hide || hide->patterns == 0) return 0;
  uint64_t sum = add_sum(0xcbf29ce484222325ull, hide->source);
  for (size_t i = 0; i < hide->patterns; i++) sum = add_sum(sum, hide->pattern[i]);
  return sum ? sum : 1;
}

/* The last `count` words of `path`; NULL = it has fewer. */
static const char *last_words(const char *path, size_t count) {
  for (const char *at = path + strlen(path); at > path; at--)
    if (at[-1] == '/' && --count == 0) return at;
  return count == 1 ? path : NULL;
}

static size_t words_of(const char *pattern) {
  size_t words = 1;
  for (const char *at = pattern; *at; at++) words += *at == '/' && at[1];
  return words;
}

/* Without the slash at the end of one for directories. */
static int matches(const char *pattern, const char *path, int may_be_directory) {
  char plain[PATH_MAX];
  copy_text(plain, sizeof plain, pattern);
  size_t length = strlen(plain);
  if (length > 0 && plain[length - 1] == '/') {
    if (!may_be_directory) return 0;
    plain[length - 1] = 0;
  }
  const char *end = last_words(path, words_of(plain));
  return end && fnmatch(plain, end, FNM_PATHNAME | FNM_NOESCAPE | FNM_CASEFOLD) == 0;
}

static int matches_any(const struct hide *hide, const char *path, int may_be_directory) {
  for (size_t i = 0; i < hide->patterns; i++)
    if (matches(hide->pattern[i], path, may_be_directory)) return 1;
  return 0;
}

int hide_matches(const struct hide *hide, const char *at, const char *name, int may_be_directory) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/%s%s%s", hide->source, at, at[0] ? "/" : "", name);
  return matches_any(hide, path, may_be_directory);
}

int hide_holds(const struct hide *hide, int is_directory) {
  char path[PATH_MAX];
  if (hide->patterns == 0) return 0;
  copy_text(path, sizeof path, hide->source);
  if (matches_any(hide, path, is_directory)) return 1;
  for (char *slash = strrchr(path, '/'); slash && slash != path; slash = strrchr(path, '/')) {
    *slash = 0;
    if (matches_any(hide, path, 1)) return 1;
  }
  return 0;
}
