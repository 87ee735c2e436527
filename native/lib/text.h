/*
 * A text that is put together on the way of a run. There is one at a time, in memory that is kept: to give a page back takes longer than
 * all that is written into it (lib/pages.h).
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Begins anew; NULL when memory is short. */
FILE *text_begin(void);

/* The text since then, ended by NUL, which is not counted; valid until the next text begins. NULL when memory was short. */
char *text_end(size_t *size);

/* Two digits for each byte, without a NUL. */
void put_hex(char *text, const unsigned char *bytes, size_t size);

/* Is `path` the place, or in the directory that it is? The root, "/", holds nothing here. */
static inline int is_at_or_below(const char *path, const char *place) {
  size_t length = strlen(place);
  return strncmp(path, place, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* NULL ends them. */
static inline int is_one_of(const char *const *words, const char *word) {
  while (*words && strcmp(*words, word) != 0) words++;
  return *words != NULL;
}

/* With its NUL. */
static inline void put_word(FILE *out, const char *word) { fwrite(word, 1, strlen(word) + 1, out); }
/* A command for init: how many words, how many variables, the umask, then those, each with its NUL. NULL when memory is short. */
char *command_block(char *const *command, char *const *env, unsigned umask, size_t *size);

/* The word at *at, which moves behind its NUL. NULL with EBADMSG where no whole word is left before `end`. */
const char *take_word(const char **at, const char *end);
