/*
 * Shared by the fuzz targets. Each target is one parser of the native part under libFuzzer, ASan and UBSan (scripts/fuzz).
 * A target aborts on a wrong answer, too: a value outside of its input, a file that is refused without a reason.
 */
#ifndef LLM_DO_FUZZ_H
#define LLM_DO_FUZZ_H

#include <err.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* errx would be an ordinary end to libFuzzer; abort makes it keep the input. */
#define WRONG(...) (warnx(__VA_ARGS__), abort())

#endif
