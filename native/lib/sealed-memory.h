/* Bytes for another process, which neither side can change any more. */
#pragma once

#include <stddef.h>

/* A sealed memfd with these bytes, at offset 0; -1 with errno. `what` is its name, for people. */
int memory_sealed(const char *bytes, size_t size, const char *what);
/* The same with the text since text_begin. */
int text_sealed(const char *what);
