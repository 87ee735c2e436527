#include "lib/text.h"

#include <errno.h>
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

const char *take_word(const char **at, const char *end) {
  const char *word = *at, *nul = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;
  if (!nul) return errno = EBADMSG, NULL;
  *at = nul + 1;
  return word;
}
