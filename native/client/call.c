#include "client/call.h"

#include "client/shell-call.h"
#include "lib/utf8.h"
#include "lib/syscalls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#ifndef LLM_DO_VERSION
#error "LLM_DO_VERSION: the version of package.json, part of every key"
#endif
#define AS_TEXT_OF(word) #word
#define AS_TEXT(word) AS_TEXT_OF(word)

#define VARIABLE_OPTION "--env"
/* U+FFFD, by which node shows bytes that are no text. */
#define REPLACEMENT "\xef\xbf\xbd"

/* ---- the command line ---- */

static const char *const BEFORE_VALUE[] = {OPTIONS_BEFORE_VALUE};
static const char *const ALONE[] = {OPTIONS_ALONE};
#define IS_ONE_OF(names, word, length) is_one_of(names, sizeof names / sizeof *names, word, length)

static int is_one_of(const char *const *names, size_t count, const char *word, size_t length) {
  for (size_t i = 0; i < count; i++)
    if (strncmp(names[i], word, length) == 0 && !names[i][length]) return 1;
  return 0;
}

/* How many words one of our options takes, its value with it; 0 where the word is another one, or has no value. */
static size_t option_words(char **word) {
  size_t length = strcspn(*word, "=");
  if (IS_ONE_OF(ALONE, *word, length)) return 1;
  if (!IS_ONE_OF(BEFORE_VALUE, *word, length)) return 0;
  if ((*word)[length] == '=') return 1;
  return word[1] ? 2 : 0;
}

static int take_script(struct call *call) {
  call->command = shell_call(call->options_end, &call->script);
  return call->command ? 0 : -1;
}

int call_split(struct call *call) {
  char **word = call->options = call->words;
  for (size_t taken; *word && (taken = option_words(word)) > 0;) word += taken;
  call->options_end = call->command = word;
  if (*word && strcmp(*word, "--") == 0) call->command++;
  else if (*word && (*word)[0] == '-' && (*word)[1]) return take_script(call);
  return call->command[0] ? 0 : -1;
}

/* ---- the key ---- */

static int add_first_line(struct key *key, const char *path, const char *start) {
  char *line = key_end(key);
  int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, line, key_room(key));
  if (fd >= 0) close(fd);
  if (length <= 0) return key_add(key, "");
  line[length] = 0;
  while (line && strncmp(line, start, strlen(start)) != 0) line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
  return line ? key_add_bytes(key, line, strcspn(line, "\n")) : key_add(key, "");
}

/* The line that /proc/self/status has, without the time that the kernel takes to write all the others. */
static int add_capabilities(struct key *key) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2];
  char text[32];
  if (syscall(SYS_capget, &header, sets) < 0) return key_add(key, "");
  snprintf(text, sizeof text, "CapEff:\t%08x%08x", sets[1].effective, sets[0].effective);
  return key_add(key, text);
}

static int add_link(struct key *key, const char *path) {
  ssize_t length = readlink(path, key_end(key), key_room(key));
  return key_took(key, length < 0 ? 0 : (size_t)length);
}

static const char *const NAMES[] = {KEY_VARIABLES};

static int concerns_us(const char *variable) {
  if (strncmp(variable, KEY_VARIABLE_PREFIX, strlen(KEY_VARIABLE_PREFIX)) == 0) return 1;
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (strncmp(variable, NAMES[i], strlen(NAMES[i])) == 0 && variable[strlen(NAMES[i])] == '=') return 1;
  return 0;
}

static int compare_words(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add_environment(struct key *key) {
  char *chosen[KEY_WORDS_MAX];
  size_t n = 0;
  for (char **variable = environ; *variable; variable++) {
    if (!concerns_us(*variable)) continue;
    if (n == KEY_WORDS_MAX) return -1;
    chosen[n++] = *variable;
  }
  qsort(chosen, n, sizeof *chosen, compare_words);
  int done = key_add_number(key, n);
  for (size_t i = 0; i < n && done == 0; i++) done = key_add(key, chosen[i]);
  return done;
}

/* Node reports the fault of a name or value that is not valid text. */
static int is_value(const char *variable) { return utf8_is_text(variable, strlen(variable)) && !strstr(variable, REPLACEMENT); }

char *call_variable(char *word, const char *before) {
  char *variable = strcmp(before, VARIABLE_OPTION) == 0 ? word : NULL;
  if (!variable && strncmp(word, VARIABLE_OPTION "=", sizeof VARIABLE_OPTION) == 0) variable = word + sizeof VARIABLE_OPTION;
  const char *equals = variable ? strchr(variable, '=') : NULL;
  return equals && equals > variable ? variable : NULL;
}

static int add_option(struct key *key, const char *word, const char *variable) {
  return variable ? key_add_bytes(key, word, (size_t)(strchr(variable, '=') + 1 - word)) : key_add(key, word);
}

/* Returns 0 or -1. */
static int find_given(struct call *call) {
  const char *before = "";
  size_t given = 0;
  free(call->given); /* of another key of the same call */
  call->given = calloc((size_t)(call->options_end - call->options) + 1, sizeof *call->given);
  if (!call->given) return -1;
  for (char **word = call->options; word < call->options_end; word++) {
    char *option = *word, *variable = option ? call_variable(option, before) : NULL;
    if (!option) return -1; /* none is, before options_end */
    before = option;
    if (strcmp(option, KEY_ANY_VARIABLES) == 0) return -1; /* not one of our options, and it would be taken for the mark */
    if (variable && !is_value(variable)) return -1;
    if (variable) call->given[given++] = variable;
  }
  return 0;
}

/* ---- directories that can have slots ---- */

static const char *const OF_PLACES[] = {PLACE_OPTIONS};

/* `SRC:TARGET`, of which SRC is absolute and neither has another colon before a slash: what src/policy/keys/zone-text.ts divides there, too. */
static int is_place(const char *value) {
  const char *colon = strchr(value, ':');
  return value[0] == '/' && colon && colon[1] == '/' && !strstr(colon + 1, ":/");
}

/* The value of an option of places in this word; NULL where there is none. */
static const char *place_value(const char *word, const char *before) {
  if (IS_ONE_OF(OF_PLACES, before, strlen(before))) return word;
  size_t length = strcspn(word, "=");
  return word[length] && IS_ONE_OF(OF_PLACES, word, length) ? word + length + 1 : NULL;
}

static int compare_places(const void *a, const void *b) {
  return strcmp(((const struct named_place *)a)->target, ((const struct named_place *)b)->target);
}

static int write_slots(struct call *call) {
  for (size_t i = 0; i < call->places; i++) {
    struct named_place *place = &call->place[i];
    const char *word = *place->word;
    if (asprintf(&place->slotted, "%.*s%c%zup%s", (int)(place->source - word), word, PLACE_SLOT, i + 1, place->source + place->length) < 0) return -1;
  }
  return 0;
}

/* Returns -1 where a word looks like a slot. With more places than can have one, none has. */
static int find_places(struct call *call) {
  const char *before = "";
  size_t found = 0;
  for (char **word = call->options; word < call->options_end && *word; before = *word++) {
    const char *value = place_value(*word, before);
    if (strchr(*word, PLACE_SLOT)) return -1;
    if (!value || !is_place(value)) continue;
    if (found < PLACE_ZONES_MAX) call->place[found] = (struct named_place){word, value, strcspn(value, ":"), strchr(value, ':') + 1, NULL};
    found++;
  }
  call->places = found <= PLACE_ZONES_MAX ? found : 0;
  qsort(call->place, call->places, sizeof *call->place, compare_places);
  return write_slots(call);
}

/* The word, with a slot where it is for any directory. */
static const char *shown_word(const struct call *call, char **word, int is_for_any) {
  for (size_t i = 0; is_for_any && i < call->places; i++)
    if (call->place[i].word == word) return call->place[i].slotted;
  return *word;
}

/* ---- the options ---- */

static int add_named(const struct call *call, struct key *key, int is_for_any) {
  const char *before = "";
  int done = key_add_number(key, (unsigned long long)(call->options_end - call->options));
  for (char **word = call->options; word < call->options_end && *word && done == 0; before = *word++)
    done = add_option(key, shown_word(call, word, is_for_any), call_variable(*word, before));
  return done;
}

/* Is it the option whose variable is the next word? */
static int is_before_variable(char **word, char **end) {
  return word + 1 < end && word[1] && strcmp(*word, VARIABLE_OPTION) == 0 && call_variable(word[1], *word);
}

/* Adjacent variables are one word, whatever their names and number. */
static int add_unnamed(const struct call *call, struct key *key, int is_for_any) {
  const char *before = "", *kept[KEY_WORDS_MAX];
  size_t count = 0;
  for (char **word = call->options; word < call->options_end && *word; before = *word++) {
    int is_variable = call_variable(*word, before) != NULL;
    int is_same = is_variable && count > 0 && strcmp(kept[count - 1], KEY_ANY_VARIABLES) == 0;
    if (count == KEY_WORDS_MAX) return -1;
    if (is_variable && !is_same) kept[count++] = KEY_ANY_VARIABLES;
    else if (!is_variable && !is_before_variable(word, call->options_end)) kept[count++] = shown_word(call, word, is_for_any);
  }
  int done = key_add_number(key, count);
  for (size_t i = 0; i < count && done == 0; i++) done = key_add(key, kept[i]);
  return done;
}

static int add_options(const struct call *call, enum key_variables variables, struct key *key, int is_for_any) {
  return (call->given[0] && variables == KEY_FOR_ANY ? add_unnamed : add_named)(call, key, is_for_any);
}

static int add_directory(struct key *key) { return getcwd(key_end(key), key_room(key)) ? key_took(key, strlen(key_end(key))) : -1; }

static int add_word(struct key *key, enum key_word word, const struct call *call) {
  switch (word) {
    case KEY_VERSION: return key_add(key, AS_TEXT(LLM_DO_VERSION));
    case KEY_ROOT: return key_add(key, call->root);
    case KEY_UID: return key_add_number(key, geteuid());
    case KEY_GID: return key_add_number(key, getegid());
    case KEY_BOOT: return add_first_line(key, "/proc/sys/kernel/random/boot_id", "");
    case KEY_CGROUP: return add_first_line(key, "/proc/self/cgroup", "0::");
    case KEY_CAPABILITIES: return add_capabilities(key);
    case KEY_USER_NAMESPACE: return add_link(key, "/proc/self/ns/user");
    case KEY_MOUNT_NAMESPACE: return add_link(key, "/proc/self/ns/mnt");
    case KEY_DIRECTORY: return add_directory(key);
    case KEY_TERMINAL: return key_add_number(key, isatty(0) && isatty(2) ? 1 + isatty(1) : 0);
    case KEY_WORDS: break;
  }
  return -1;
}

int call_key(struct call *call, enum key_variables variables, struct key *key) {
  key->count = 0, key->used = 0;
  if (find_given(call) < 0) return -1;
  program_find(call->command[0], getenv("PATH"), &call->program);
  for (int word = 0; word < KEY_WORDS; word++) {
    if (word == KEY_DIRECTORY) call->key_directory = key->used;
    if (add_word(key, (enum key_word)word, call) < 0) return -1;
  }
  if (key_add(key, call->program.key) < 0) return -1;
  call->key_options = key->used;
  if (add_options(call, variables, key, 0) < 0) return -1;
  call->key_environment = key->used;
  return add_environment(key);
}

int call_key_for_any(struct call *call, enum key_variables variables, const struct key *own, struct key *key) {
  size_t behind = call->key_directory + strlen(own->bytes + call->key_directory) + 1;
  key->count = key->used = 0;
  if (find_places(call) < 0 || key_copy(key, own, 0, call->key_directory) < 0 || key_add(key, KEY_ANY_DIRECTORY) < 0) return -1;
  if (key_copy(key, own, behind, call->key_options) < 0 || add_options(call, variables, key, 1) < 0) return -1;
  return key_copy(key, own, call->key_environment, own->used);
}
