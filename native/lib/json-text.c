#include "lib/json-text.h"

void put_json(FILE *out, const char *text) {
  fputc('"', out);
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    if (*at == '"' || *at == '\\') fprintf(out, "\\%c", *at);
    else if (*at < 0x20) fprintf(out, "\\u%04x", *at);
    else fputc(*at, out);
  }
  fputc('"', out);
}
