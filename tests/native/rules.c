/*
 * rules FILE   judges the commands on stdin by the rules of FILE, a launch file, and prints what lets each of them run, an empty line for none.
 * A command is the words `-c`, TEXT or the words `--`, their number, the words; each ended by NUL.
 */
#include "client/rules.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  struct launchfile file;
  const char *problem;
  size_t size, length;
  int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
  char *bytes = fd < 0 ? NULL : read_all(fd, LAUNCHFILE_MAX, &size), *cases = read_all(0, LAUNCHFILE_MAX, &length);
  if (!bytes || !cases || launchfile_check(bytes, size, &file, &problem) < 0) errx(2, "no launch file, or no commands");
  for (const char *at = cases; at < cases + length;) {
    const char *by = judge(&file, &at);
    puts(by ? by : "");
  }
  fflush(stdout);
  _exit(0); /* what is kept is never given back, as in the client */
}
