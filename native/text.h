/* Words as JSON. */
#ifndef LLM_DO_TEXT_H
#define LLM_DO_TEXT_H

#include <stdio.h>

/* A string of JSON, quotes included. Bytes above 127 go out as they are; the reader replaces what is not UTF-8. */
void put_json(FILE *out, const char *text);

#endif
