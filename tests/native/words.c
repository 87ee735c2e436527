/*
 * words   divides the command lines on stdin as the client does. A line is the number of its words, then the words; of each is printed
 * `none`, or the number of its option words, the script or nothing, the number of words of the command, and these. Every word is ended by NUL.
 */
#include "client/call.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX (1 << 20)

static void print_words(char **words) {
  size_t count = 0;
  while (words[count]) count++;
  printf("%zu%c", count, 0);
  for (size_t i = 0; i < count; i++) printf("%s%c", words[i], 0);
}

static void divide(char **words) {
  struct call call = {.words = words};
  if (call_split(&call) < 0) {
    printf("none%c", 0);
    return;
  }
  printf("%td%c%s%c", call.options_end - call.options, 0, call.script ? call.script : "", 0);
  print_words(call.command);
}

static char *next(char **at) {
  char *word = *at;
  *at += strlen(word) + 1;
  return word;
}

int main(void) {
  static char bytes[BYTES_MAX];
  size_t size = fread(bytes, 1, sizeof bytes - 1, stdin);
  if (!feof(stdin)) errx(2, "more than %d bytes", BYTES_MAX);
  for (char *at = bytes; at < bytes + size;) {
    char *words[64] = {NULL};
    int count = atoi(next(&at));
    if (count < 0 || count > 63) errx(2, "too many words");
    for (int i = 0; i < count; i++) words[i] = next(&at);
    divide(words);
  }
  fflush(stdout);
  _exit(0); /* what is kept is never given back, as in the client */
}
