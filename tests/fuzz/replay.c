/*
 * replay < CORPUS - gives a target each input of its corpus once, without libFuzzer. Prints the line of each input before it is
 * given, so that the last line names the input of a fault.
 */
#include "fuzz.h"

/* Decodes a line of base64(1) in place. */
static size_t decode(char *line) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t size = 0;
  unsigned bits = 0;
  int count = 0;
  for (const char *at = line; *at != '\n' && *at != '='; at++) {
    const char *digit = *at ? strchr(digits, *at) : NULL;
    if (!digit) errx(1, "not base64");
    bits = bits << 6 | (unsigned)(digit - digits);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    line[size++] = (char)(bits >> count);
  }
  return size;
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  for (int number = 1; getline(&line, &room, stdin) > 0; number++) {
    printf("%d\n", number);
    fflush(stdout);
    size_t size = decode(line);
    uint8_t *exact = malloc(size ? size : 1); /* a byte too far is a fault */
    memcpy(exact, line, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
  }
  free(line);
  return 0;
}
