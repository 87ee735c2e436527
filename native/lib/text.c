#include "lib/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;
static char *bytes;
static size_t used;

FILE *text_begin(void) {
  if (out) rewind(out);
  else out = open_memstream(&bytes, &used);
  return out;
}

char *text_end(size_t *size) {
  if (!out || fflush(out) != 0 || ferror(out)) return NULL;
  bytes[used] = 0; /* a longer one may have stood there */
  *size = used;
  return bytes;
}

void put_hex(char *text, const unsigned char *of, size_t size) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < size; i++) *text++ = digits[of[i] >> 4], *text++ = digits[of[i] & 15];
}

static char *put_words(char *at, char *const *words) {
  for (; *words; words++) at = stpcpy(at, *words) + 1;
  return at;
}

static size_t size_of(char *const *words, size_t *count) {
  size_t size = 0;
  for (*count = 0; words[*count]; (*count)++) size += strlen(words[*count]) + 1;
  return size;
}

char *command_block(char *const *command, char *const *env, unsigned umask, size_t *size) {
  size_t arguments, variables, room = size_of(command, &arguments) + size_of(env, &variables) + 64;
  char *block = malloc(room);
  if (!block) return NULL;
  int head = sprintf(block, "%zu%c%zu%c%u%c", arguments, 0, variables, 0, umask, 0);
  *size = (size_t)(put_words(put_words(block + head, command), env) - block);
  return block;
}

const char *take_word(const char **at, const char *end) {
  const char *word = *at, *nul = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;
  if (!nul) return errno = EBADMSG, NULL;
  *at = nul + 1;
  return word;
}
