/*
 * A text that is put together on the way of a run. There is one at a time, in memory that is kept: to give a page back takes longer than
 * all that is written into it (lib/pages.h).
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Begins anew; NULL when memory is short. */
FILE *text_begin(void);

/* The text since then, ended by NUL, which is not counted; valid until the next text begins. NULL when memory was short. */
char *text_end(size_t *size);

/* Two digits for each byte, without a NUL. */
void put_hex(char *text, const unsigned char *bytes, size_t size);

/* The word at *at, which moves behind its NUL. NULL with EBADMSG where no whole word is left before `end`. */
const char *take_word(const char **at, const char *end);
