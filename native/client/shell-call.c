#include "client/shell-call.h"

#include "lib/contract.h"
#include "lib/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_bash_option(const char *word) {
  static const char *const OF_BASH[] = {BASH_OPTIONS, NULL};
  return is_one_of(OF_BASH, word);
}

static int is_cluster(const char *word) { return word[0] == '-' && word[1] && word[1 + strspn(word + 1, SHELL_LETTERS)] == 0; }

/* The script of a shell's words, which begin at `word`; NULL where no shell is meant. `shell` becomes what runs it. */
static char **script_at(char **word, const char **shell) {
  int has_script = 0, needs_bash = 0;
  for (; *word && (is_bash_option(*word) || is_cluster(*word)); word++) {
    int is_long = is_bash_option(*word);
    needs_bash |= is_long || strpbrk(*word, BASH_LETTERS) != NULL;
    if (is_long) continue;
    has_script |= strchr(*word, 'c') != NULL;
    if (strchr(*word, 'o') && word[1]) word++; /* the name of an option */
  }
  *shell = needs_bash && access(BASH, X_OK) == 0 ? BASH : SHELL;
  if (!has_script) return NULL;
  return *word && strcmp(*word, "--") == 0 ? word + 1 : word;
}

/* Node reads our options behind a script. */
static int is_option(const char *word) { return word && strncmp(word, "--", 2) == 0 && word[2] >= 'a' && word[2] <= 'z'; }

static char **with_shell(const char *shell, char **words) {
  size_t total = 0;
  while (words[total]) total++;
  char **command = calloc(total + 2, sizeof *command);
  if (!command) return NULL;
  command[0] = (char *)shell;
  memcpy(command + 1, words, total * sizeof *words);
  return command;
}

char **shell_call(char **words, const char **text) {
  const char *shell;
  char **script = script_at(words, &shell);
  if (!script || !*script || is_option(script[1])) return NULL;
  *text = *script;
  return with_shell(shell, words);
}

