#include "client/rules.h"

#include "client/utf8.h"

#include <string.h>

/* Longer texts of -c are node's. */
#define TEXT_MAX 4096
#define TOKENS_MAX 512

/* ---- words ---- */

/* What shows as what it is. */
static int is_plain(const char *text) {
  for (; *text; text++)
    if (*text < ' ' || *text > '~') return 0;
  return 1;
}

/* Node refuses bytes that no rule can be compared with. */
static int are_text(char **words) {
  for (; *words; words++)
    if (!utf8_is_text(*words, strlen(*words))) return 0;
  return 1;
}

static int is_of_shell(const char *word) {
  static const char *const WORDS[] = {SHELL_WORDS};
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
    if (strcmp(WORDS[i], word) == 0) return 1;
  return 0;
}

struct division {
  char bytes[2 * TEXT_MAX];
  char *token[TOKENS_MAX + 1];
};

/* Inside double quotes a backslash only takes the meaning of a quote and of itself; inside single quotes of nothing. */
static int escapes(char quote, char next) { return !quote || (quote == '"' && (next == '"' || next == '\\')); }

/* As src/worker/shell-words.ts divides; `text` is plain. Returns how many tokens there are, or -1. */
static int divide(const char *text, struct division *division) {
  char *at = division->bytes, quote = 0;
  int count = 0, is_open = 0;
  for (; *text; text++) {
    if (!quote && *text == ' ') {
      if (is_open) *at++ = 0;
      is_open = 0;
      continue;
    }
    if (!is_open) {
      if (count == TOKENS_MAX) return -1;
      division->token[count++] = at;
      is_open = 1;
    }
    if (quote && *text == quote) quote = 0;
    else if (!quote && (*text == '"' || *text == '\'')) quote = *text;
    else if (*text == '\\' && escapes(quote, text[1])) {
      if (!*++text) return -1;
      *at++ = *text;
    } else *at++ = *text;
  }
  *at = 0;
  division->token[count] = NULL;
  return quote ? -1 : count;
}

/* The words of a text that a shell would only start one program by; NULL for any other. */
static char **words_of(const char *script) {
  static struct division division;
  if (strlen(script) >= TEXT_MAX || !is_plain(script) || strpbrk(script, "|&;<>()$`{}")) return NULL;
  if (divide(script, &division) < 1) return NULL;
  const char *first = division.token[0];
  return !*first || strchr(first, '=') || is_of_shell(first) ? NULL : division.token;
}

/* ---- rules ---- */

/* Steps over the tokens of a rule. 1 when it matches, 0 when it does not, -1 when the entries are no rule. */
static int match(const struct launchfile *file, size_t *position, const struct entry *rule, char **words) {
  struct entry token;
  uint64_t count;
  int is_exact = strcmp(rule->word[1], "exact") == 0, matches = 1;
  if (parse_number(rule->word[2], TOKENS_MAX, &count) < 0 || (!is_exact && strcmp(rule->word[1], "prefix") != 0)) return -1;
  for (; count > 0; count--) {
    if (!launchfile_next(file, position, &token) || token.verb != V_TOKEN) return -1;
    if (matches && *words && strcmp(*words, token.word[0]) == 0) words++;
    else matches = 0;
  }
  return matches && (!is_exact || !*words);
}

/* The first rule that matches decides, else the default. -1 when the entries are no rules. */
static int decide(const struct launchfile *file, char **words, struct entry *decided) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb == V_TOKEN) return -1;
    if (entry.verb != V_RULE) continue;
    const struct entry rule = entry;
    int matches = match(file, &position, &rule, words);
    if (matches != 0) return *decided = rule, matches < 0 ? -1 : 0;
  }
  return launchfile_find(file, V_DEFAULT, decided) ? 0 : -1;
}

const char *rules_let_run(const struct launchfile *file, const char *script, char **command) {
  struct entry decided;
  if (!launchfile_find(file, V_DEFAULT, &decided)) return launchfile_find(file, V_RULE, &decided) ? NULL : "policy";
  char **words = !are_text(command) ? NULL : script ? words_of(script) : command;
  if (!words || !*words[0] || !is_plain(words[0])) return NULL;
  if (decide(file, words, &decided) < 0 || strcmp(decided.word[0], "run") != 0) return NULL;
  return decided.verb == V_RULE ? decided.word[3] : decided.word[1];
}
