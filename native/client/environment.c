#include "client/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* In the order of their putting, until they are settled. */
struct variables {
  struct variable {
    char *word;
    size_t at;
  } *all;
  size_t count, room;
};

static size_t name_length(const char *variable) { return strcspn(variable, "="); }

static int put(struct variables *list, char *word) {
  if (list->count == list->room) {
    size_t room = list->room ? 2 * list->room : 64;
    struct variable *larger = reallocarray(list->all, room, sizeof *larger);
    if (!larger) return -1;
    list->all = larger, list->room = room;
  }
  list->all[list->count] = (struct variable){word, list->count};
  list->count++;
  return 0;
}

static int compare_names(const char *one, const char *other) {
  size_t length = name_length(one), longest = name_length(other);
  int order = memcmp(one, other, length < longest ? length : longest);
  return order ? order : length < longest ? -1 : length > longest;
}

static int compare_variables(const void *a, const void *b) {
  const struct variable *one = a, *other = b;
  int order = compare_names(one->word, other->word);
  return order ? order : one->at < other->at ? -1 : one->at > other->at;
}

/* Sorts by name; of several with one name the last one counts. */
static void settle(struct variables *list) {
  size_t kept = 0;
  if (list->count) qsort(list->all, list->count, sizeof *list->all, compare_variables);
  for (size_t i = 0; i < list->count; i++)
    if (i + 1 == list->count || compare_names(list->all[i].word, list->all[i + 1].word) != 0) list->all[kept++] = list->all[i];
  list->count = kept;
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

static int inherit(struct variables *list, const char *pattern) {
  /* Backwards, since the last one put counts: of several variables with one name it is the first, as for getenv(3). */
  for (size_t at = count(environ); at-- > 0;)
    if (matches(pattern, environ[at]) && put(list, environ[at]) < 0) return -1;
  return 0;
}

static int settle_given(struct variables *list, char *const *given) {
  for (; *given; given++)
    if (put(list, *given) < 0) return -1;
  settle(list);
  return 0;
}

/* The settled one of that name. */
static int compare_to_name(const void *name, const void *variable) { return compare_names(name, ((const struct variable *)variable)->word); }

static int put_given(struct variables *list, const struct variables *given, const char *name) {
  if (strcmp(name, ANY_GIVEN) == 0) {
    for (size_t i = 0; i < given->count; i++)
      if (put(list, given->all[i].word) < 0) return -1;
    return 0;
  }
  const struct variable *found = given->count ? bsearch(name, given->all, given->count, sizeof *given->all, compare_to_name) : NULL;
  return found ? put(list, found->word) : -1;
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
  while (launchfile_next_of(file, V_UNSET, &position, &entry))
    if (getenv(entry.word[0])) return 0;
  return 1;
}

static int put_set(struct variables *list, const struct entry *entry) {
  const char *value = entry->verb == V_LOCALE ? getenv(entry->word[0]) : NULL;
  if (!value || !*value) value = entry->word[1];
  if (!*value && entry->verb == V_LOCALE) return 0;
  char *variable = join(entry->word[0], value);
  if (!variable || put(list, variable) < 0) return free(variable), -1;
  return 0;
}

static int put_entry(struct variables *list, const struct variables *given, const struct entry *entry) {
  switch (entry->verb) {
    case V_INHERIT: return inherit(list, entry->word[0]);
    case V_GIVEN: return put_given(list, given, entry->word[0]);
    case V_VARIABLE:
    case V_LOCALE: return put_set(list, entry);
    default: return 0;
  }
}

/* Its words, then NULL. */
static char **words_of(const struct variables *list) {
  char **words = calloc(list->count + 1, sizeof *words);
  for (size_t i = 0; words && i < list->count; i++) words[i] = list->all[i].word;
  return words;
}

char **command_environment(const struct launchfile *file, char *const *given_words) {
  struct variables list = {0}, given = {0};
  struct entry entry;
  size_t position = 0;
  int done = settle_given(&given, given_words);
  while (done == 0 && launchfile_next(file, &position, &entry)) done = put_entry(&list, &given, &entry);
  settle(&list);
  char **words = done == 0 ? words_of(&list) : NULL;
  free(list.all), free(given.all);
  return words;
}
