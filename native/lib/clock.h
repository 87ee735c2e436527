#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t now_ns(void);
/* The time of day, in seconds since 1970. */
long long now_s(void);
