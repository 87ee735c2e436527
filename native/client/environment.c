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

static size_t count_variables(void) {
  size_t n = 0;
  while (environ[n]) n++;
  return n;
}

static void inherit(struct variables *all, const char *pattern) {
  size_t length = strlen(pattern);
  int is_prefix = length > 0 && pattern[length - 1] == '*';
  /* Backwards, since the last one put counts: of several variables with one name it is the first, as for getenv(3). */
  for (size_t at = count_variables(); at-- > 0;)
    if (is_prefix ? strncmp(environ[at], pattern, length - 1) == 0 : name_length(environ[at]) == length && strncmp(environ[at], pattern, length) == 0)
      put(all, environ[at]);
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
  char *variable = given_value(given, name);
  if (variable) put(all, variable);
  return variable ? 0 : -1;
}

int variables_are_unset(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry))
    if (entry.verb == V_UNSET && getenv(entry.word[0])) return 0;
  return 1;
}

char **command_environment(const struct launchfile *file, char *const *given) {
  struct variables all = {calloc(count_variables() + file->size, sizeof(char *)), 0};
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
