#include "client/exec-in-words.h"

#include "client/result.h"
#include "client/shell-call.h"
#include "lib/init-protocol.h"
#include "lib/launch-file.h"
#include "lib/sealed-memory.h"
#include "lib/text.h"
#include "lib/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the words ---- */

/* Returns 0, or -1 where Node has to read it. */
static int read_time(const char *text, uint64_t *ms) {
  static const struct {
    const char *unit;
    uint64_t ms;
  } UNITS[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  char number[16];
  size_t digits = strspn(text, "0123456789");
  if (digits >= sizeof number) return -1;
  memcpy(number, text, digits);
  number[digits] = 0;
  for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
    if (strcmp(text + digits, UNITS[i].unit) == 0) return parse_number(number, INT32_MAX / UNITS[i].ms, ms) < 0 || !*ms ? -1 : (*ms *= UNITS[i].ms, 0);
  return -1;
}

/* Is `variable` NAME=VALUE with the name at the beginning of `text`? */
static int is_called(const char *variable, const char *text, size_t length) { return strncmp(variable, text, length) == 0 && variable[length] == '='; }

/* In the place of one with the same name. */
static void add_variable(struct exec_in_words *words, const char *variable) {
  int at = 0;
  while (at < words->variables && !is_called(words->variable[at], variable, strcspn(variable, "="))) at++;
  words->variable[at] = variable;
  words->variables += at == words->variables;
}

static int has_variable(const struct exec_in_words *words, const char *name) {
  for (int i = 0; i < words->variables; i++)
    if (is_called(words->variable[i], name, strlen(name))) return 1;
  return 0;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define RESERVED "LLM_DO_SANDBOX"

/* As src/policy/readers.ts has it. */
static int is_variable_name(const char *text, size_t length) {
  return strspn(text, LETTERS "0123456789") == length && strchr(LETTERS, text[0]) && strncmp(text, RESERVED, strlen(RESERVED)) != 0;
}

/* NAME is the caller's own, unless a value was given before. Returns 0, or -1 where Node has to read it. */
static int read_variable(const char *text, struct exec_in_words *words) {
  size_t name = strcspn(text, "=");
  if (name == 0 || !is_variable_name(text, name) || !utf8_is_text(text, strlen(text)) || words->variables == EXEC_IN_VARIABLES_MAX) return -1;
  if (!text[name] && has_variable(words, text)) return 0;
  const char *found = text[name] ? text : NULL;
  for (char **own = environ; !found && *own; own++)
    if (is_called(*own, text, name)) found = *own;
  if (found) add_variable(words, found);
  return 0;
}

/* Returns 0, or -1 where Node says what is wrong with it. */
static int read_directory(const char *text, struct exec_in_words *words) {
  words->directory = text;
  size_t length = strlen(text);
  return text[0] == '/' && !strstr(text, "//") && !strstr(text, "/.") && (length == 1 || text[length - 1] != '/') ? 0 : -1;
}

static int read_option(const char *name, const char *value, struct exec_in_words *words) {
  if (strcmp(name, "--env") == 0) return read_variable(value, words);
  if (strcmp(name, "--in") == 0) return words->name = value, 0;
  if (strcmp(name, "--workdir") == 0) return read_directory(value, words);
  if (strcmp(name, "--timeout") != 0) return -1;
  words->timeout = value;
  return read_time(value, &words->timeout_ms);
}

/* Returns whether it is an option that takes no further word. */
static int read_switch(const char *word, struct exec_in_words *words) {
  if (strcmp(word, "--tty") == 0) return words->has_terminal = 1;
  if (strcmp(word, "--report") == 0) return words->reports = 1;
  if (strcmp(word, "--json") == 0) return words->form = "native", 1;
  if (strcmp(word, "--keep-state") == 0 || strcmp(word, "--keep-state=keep") == 0) return words->state = EXEC_IN_KEEPS;
  if (strcmp(word, "--keep-state=reset") == 0) return words->state = EXEC_IN_RESETS;
  if (strncmp(word, "--json=", 7) != 0) return 0;
  return words->form = word + 7, 1;
}

/* Node says what is wrong with bytes that no JSON can hold. */
static int are_sound(const struct exec_in_words *words) {
  if (!words->form) return 1;
  if (words->has_terminal || !result_has_form(words->form)) return 0;
  for (char **word = words->command; *word; word++)
    if (!utf8_is_text(*word, strlen(*word))) return 0;
  return 1;
}

int exec_in_read(char **at, struct exec_in_words *words) {
  for (; *at && strncmp(*at, "--", 2) == 0 && (*at)[2]; at++) {
    char name[16] = "", *equals = strchr(*at, '='), *value = equals ? equals + 1 : at[1];
    size_t length = equals ? (size_t)(equals - *at) : strlen(*at);
    if (read_switch(*at, words)) continue;
    if (length >= sizeof name || !value) return -1;
    memcpy(name, *at, length);
    if (read_option(name, value, words) < 0) return -1;
    at += !equals;
  }
  const char *script;
  int is_shell = *at && **at == '-' && strcmp(*at, "--") != 0;
  words->command = is_shell ? shell_call(at, &script) : *at && strcmp(*at, "--") == 0 ? at + 1 : at;
  return words->command && words->command[0] && are_sound(words) ? 0 : -1;
}

/* ---- the request ---- */

/* The variables that come without being named: 0 or 1 each. */
static int takes_term(const struct exec_in_words *words) { return getenv("TERM") && !has_variable(words, "TERM"); }
static int moves(const struct exec_in_words *words) { return words->directory && !has_variable(words, "PWD"); }

static void put_block(FILE *out, const struct exec_in_words *words) {
  size_t count = 0;
  while (words->command[count]) count++;
  fprintf(out, "%zu%c%d%c0%c", count, 0, words->variables + takes_term(words) + moves(words), 0, 0);
  for (size_t i = 0; i < count; i++) put_word(out, words->command[i]);
  if (takes_term(words)) fprintf(out, "TERM=%s%c", getenv("TERM"), 0);
  if (moves(words)) fprintf(out, "PWD=%s%c", words->directory, 0);
  for (int i = 0; i < words->variables; i++) put_word(out, words->variable[i]);
  if (words->directory) put_word(out, words->directory);
}

int exec_in_block(const struct exec_in_words *words) {
  FILE *out = text_begin();
  if (!out) return -1;
  put_block(out, words);
  return text_sealed("command");
}
