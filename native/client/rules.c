#include "client/rules.h"

#include "lib/text.h"
#include "lib/utf8.h"

#include <string.h>

/* Longer texts of -c are node's. */
#define TEXT_MAX 4096
#define TOKENS_MAX 512

/* ---- words ---- */

/* Text that is displayed as it is; `also`: characters that are let through although they are not. */
static int is_plain(const char *text, const char *also) {
  for (; *text; text++)
    if ((*text < ' ' || *text > '~') && !strchr(also, *text)) return 0;
  return 1;
}

/* Node refuses bytes that no rule can be compared with. */
static int are_text(char **words) {
  for (; *words; words++)
    if (!utf8_is_text(*words, strlen(*words))) return 0;
  return 1;
}

static int is_of_shell(const char *word) {
  static const char *const WORDS[] = {SHELL_WORDS, NULL};
  return is_one_of(WORDS, word);
}

static int is_blank(char c) { return c == ' ' || c == '\t'; }

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
    if (!quote && is_blank(*text)) {
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

/* The rule that lets the command run, NULL where none here does. */
static const char *who_lets_run(const struct launchfile *file, char **words) {
  struct entry decided;
  if (!words[0] || !*words[0] || !is_plain(words[0], "")) return NULL;
  if (decide(file, words, &decided) < 0 || strcmp(decided.word[0], "run") != 0) return NULL;
  return decided.verb == V_RULE ? decided.word[3] : decided.word[1];
}

/* ---- the text of -c ---- */

#define SYNTAX "|&;<>()$`{}\n"
#define SUBSTITUTION "$`(){}" /* signs after which text runs that no rule has seen */
#define BETWEEN "|&;\n"
#define BLANKS " \t"
#define DIGITS "0123456789"

/* A text that only starts one program. Node decides about one that begins with a word of the shell's own. */
static const char *who_lets_simple(const struct launchfile *file, const char *text) {
  static struct division division;
  if (divide(text, &division) < 1) return NULL;
  const char *first = division.token[0];
  return strchr(first, '=') || is_of_shell(first) ? NULL : who_lets_run(file, division.token);
}

/* Bytes of `2>&1`, alone between blanks or separators: its ampersand ends no command. 0: there is none at `at`. */
static size_t duplication(const char *script, const char *at) {
  const char *end = at + strspn(at, DIGITS);
  if ((at > script && !strchr(BLANKS BETWEEN, at[-1])) || (*end != '<' && *end != '>') || end[1] != '&') return 0;
  size_t target = end[2] == '-' ? 1 : strspn(end + 2, DIGITS);
  end += 2 + target;
  return target && strchr(BLANKS BETWEEN, *end) ? (size_t)(end - at) : 0; /* the NUL is found, too */
}

/* Each becomes a blank. -1 leaves the rest to node: a redirection to a file, or an ampersand that shells do not read alike. */
static int drop_duplications(const char *script, char *text) {
  char *end = text;
  for (const char *at = script; *at;) {
    size_t length = duplication(script, at);
    *end++ = length ? ' ' : *at;
    at += length ? length : 1;
  }
  *end = 0;
  return strpbrk(text, "<>") ? -1 : 0;
}

/* Also of a blank that a backslash would have kept, as node does: then the rest cannot be divided. */
static char *trim(char *text) {
  while (is_blank(*text)) text++;
  for (char *end = strchr(text, 0); end > text && is_blank(end[-1]);) *--end = 0;
  return text;
}

/* Each command of a list or pipe is judged alone. The first one's reason counts, but for the answer to a question. */
static const char *who_lets_list(const struct launchfile *file, const char *script, const char *answer) {
  static char text[TEXT_MAX];
  const char *reason = NULL;
  if (drop_duplications(script, text) < 0) return NULL;
  for (char *rest = text, *part; (part = strsep(&rest, BETWEEN));) {
    const char *command = trim(part);
    if (!*command) continue;
    const char *by = who_lets_simple(file, command);
    if (!by) return NULL;
    if (!reason || strcmp(by, answer) == 0) reason = by;
  }
  return reason;
}

/* As decideScript in src/worker/rules.ts. */
static const char *who_lets_script(const struct launchfile *file, const char *script) {
  struct entry syntax;
  int may_use_syntax = launchfile_find(file, V_SYNTAX, &syntax);
  if (strlen(script) >= TEXT_MAX || !is_plain(script, may_use_syntax ? "\n\t" : "")) return NULL;
  if (!strpbrk(script, SYNTAX)) return who_lets_simple(file, script);
  return may_use_syntax && !strpbrk(script, SUBSTITUTION) ? who_lets_list(file, script, syntax.word[0]) : NULL;
}

const char *rules_let_run(const struct launchfile *file, const char *script, char **command) {
  struct entry entry;
  if (!launchfile_find(file, V_DEFAULT, &entry)) return launchfile_find(file, V_RULE, &entry) ? NULL : "policy";
  if (!are_text(command)) return NULL;
  return script ? who_lets_script(file, script) : who_lets_run(file, command);
}
