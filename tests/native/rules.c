/*
 * rules FILE   judges the commands on stdin by the rules of FILE, a launch file, and prints what lets each of them run, an empty line for none.
 * A command is the words `-c`, TEXT or the words `--`, their number, the words; each ended by NUL.
 */
#include "client/rules.h"
#include "load.h"

static const char *next(const char **at) {
  const char *word = *at;
  *at += strlen(word) + 1;
  return word;
}

static const char *judge(const struct launchfile *file, const char **at) {
  char *words[64] = {"/bin/sh", "-c"};
  if (strcmp(next(at), "-c") == 0) {
    words[2] = (char *)(uintptr_t)next(at);
    return rules_let_run(file, words[2], words);
  }
  int count = atoi(next(at));
  if (count < 1 || count > 63) errx(2, "too many words");
  for (int i = 0; i < count; i++) words[i] = (char *)(uintptr_t)next(at);
  words[count] = NULL;
  return rules_let_run(file, NULL, words);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  struct launchfile file = load_launchfile(argv[1]);
  size_t length;
  char *cases = read_all(0, LAUNCHFILE_MAX, &length);
  if (!cases) errx(2, "no commands");
  for (const char *at = cases; at < cases + length;) {
    const char *by = judge(&file, &at);
    puts(by ? by : "");
  }
  end(0);
}
