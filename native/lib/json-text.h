/* Words as JSON. */
#pragma once

#include <stdio.h>

/* A string of JSON, quotes included. Bytes above 127 go out as they are; the reader replaces what is not UTF-8. */
void put_json(FILE *out, const char *text);
