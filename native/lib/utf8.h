/* Is it text as node's TextDecoder takes it? */
#pragma once

#include <stddef.h>

int utf8_is_text(const char *bytes, size_t size);
