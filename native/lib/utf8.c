#include "lib/utf8.h"

/* Bytes of the character at `at`, 0 for what is none: table 3-7 of the Unicode standard, which is what TextDecoder takes. */
static size_t character(const unsigned char *at, size_t left) {
  unsigned char least = 0x80, most = 0xbf;
  size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  if (at[0] == 0xe0) least = 0xa0; /* no longer than needed */
  if (at[0] == 0xed) most = 0x9f;  /* no half of a pair */
  if (at[0] == 0xf0) least = 0x90;
  if (at[0] == 0xf4) most = 0x8f; /* nothing above U+10FFFF */
  if (length > 1 && (at[1] < least || at[1] > most)) return 0;
  for (size_t i = 2; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return length;
}

int utf8_is_text(const char *bytes, size_t size) {
  const unsigned char *at = (const unsigned char *)bytes;
  for (size_t done = 0, length; done < size; done += length)
    if ((length = character(at + done, size - done)) == 0) return 0;
  return 1;
}
