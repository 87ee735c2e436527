/* The one form of a host name, as src/network/host-rule.ts has it. */
#pragma once

#include <stddef.h>

#define HOST_NAME_BYTES 254 /* 253 and NUL */

/* Lower case, without one final dot: labels of letters, digits, "-" and "_", the last one not a number. -1 for any other text. */
int host_name_canonical(const char *text, size_t size, char name[HOST_NAME_BYTES]);
/* Whether a name ends with `.` and another one. */
int host_name_is_below(const char *name, const char *above);
