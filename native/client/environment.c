#include "client/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

struct variables {
  char **word;
  size_t count;
};

static size_t name_length(const char *variable) { return strcspn(variable, "="); }

static void put(struct variables *all, char *variable) {
  size_t length = name_length(variable);
  for (size_t i = 0; i < all->count; i++)
    if (name_length(all->word[i]) == length && memcmp(all->word[i], variable, length) == 0) {
      all->word[i] = variable;
      return;
    }
  all->word[all->count++] = variable;
}

static char *join(const char *name, const char *value) {
  char *variable = malloc(strlen(name) + strlen(value) + 2);
  if (variable) sprintf(variable, "%s=%s", name, value);
  return variable;
}

static size_t count(char *const *variables) {
  size_t n = 0;
  while (variables[n]) n++;
  return n;
}

/* A pattern that ends in `*` is a prefix. */
static int matches(const char *pattern, const char *variable) {
  size_t length = strlen(pattern);
  if (length > 0 && pattern[length - 1] == '*') return strncmp(variable, pattern, length - 1) == 0;
  return name_length(variable) == length && memcmp(variable, pattern, length) == 0;
}

static void inherit(struct variables *all, const char *pattern) {
  /* Backwards, since the last one put counts: of several variables with one name it is the first, as for getenv(3). */
  for (size_t at = count(environ); at-- > 0;)
    if (matches(pattern, environ[at])) put(all, environ[at]);
}

static int compare_names(const void *a, const void *b) {
  const char *one = *(char *const *)a, *other = *(char *const *)b;
  size_t length = name_length(one), longest = name_length(other);
  int order = memcmp(one, other, length < longest ? length : longest);
  return order ? order : length < longest ? -1 : length > longest;
}

/* Of several with one name the last one counts. */
static char *given_value(char *const *given, const char *name) {
  size_t length = strlen(name);
  char *found = NULL;
  for (; *given; given++)
    if (name_length(*given) == length && memcmp(*given, name, length) == 0) found = *given;
  return found;
}

static int put_given(struct variables *all, char *const *given, const char *name) {
  if (strcmp(name, ANY_GIVEN) == 0) {
    for (; *given; given++) put(all, *given);
    return 0;
  }
  char *variable = given_value(given, name);
  if (variable) put(all, variable);
  return variable ? 0 : -1;
}

static int is_known(const struct launchfile *file, const char *variable) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry))
    if ((entry.verb == V_VARIABLE || entry.verb == V_LOCALE || entry.verb == V_INHERIT) && matches(entry.word[0], variable)) return 1;
  return 0;
}

int given_are_unknown(const struct launchfile *file, char *const *given) {
  while (*given && !is_known(file, *given)) given++;
  return !*given;
}

int variables_are_unset(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry))
    if (entry.verb == V_UNSET && getenv(entry.word[0])) return 0;
  return 1;
}

/* How many variables the entries of a plan add at most, besides the caller's. */
static size_t count_set(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0, set = 0;
  while (launchfile_next(file, &position, &entry)) set += entry.verb == V_VARIABLE || entry.verb == V_LOCALE;
  return set;
}

char **command_environment(const struct launchfile *file, char *const *given) {
  /* Each name once. */
  struct variables all = {calloc(count(environ) + count(given) + count_set(file) + 1, sizeof(char *)), 0};
  struct entry entry;
  size_t position = 0;
  while (all.word && launchfile_next(file, &position, &entry)) {
    const char *value = entry.verb == V_LOCALE ? getenv(entry.word[0]) : NULL;
    char *variable = NULL;
    if (entry.verb == V_INHERIT) inherit(&all, entry.word[0]);
    if (entry.verb == V_GIVEN && put_given(&all, given, entry.word[0]) < 0) return free(all.word), NULL;
    if (entry.verb != V_VARIABLE && entry.verb != V_LOCALE) continue;
    if (!value || !*value) value = entry.word[1];
    if (!*value && entry.verb == V_LOCALE) continue;
    if (!(variable = join(entry.word[0], value))) return free(all.word), NULL;
    put(&all, variable);
  }
  if (all.word) qsort(all.word, all.count, sizeof *all.word, compare_names);
  return all.word;
}
