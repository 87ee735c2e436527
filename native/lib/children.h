#pragma once

#include <sys/types.h>

/*
 * Calls `each` for every child of the calling process, which has one thread and reaps none meanwhile. Returns how many there are, or -1 with
 * errno where that cannot be read to its end.
 */
int children_each(void (*each)(pid_t child, const void *context), const void *context);
