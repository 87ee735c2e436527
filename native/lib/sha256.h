/* SHA-256 (FIPS 180-4), by which the lines of the audit log are chained: `createHash('sha256')` of node. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_TEXT (2 * SHA256_BYTES + 1)
#define SHA256_BLOCK 64

struct sha256 {
  uint32_t state[8];
  uint64_t size; /* bytes so far */
  unsigned char block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *bytes, size_t size);
/* In hexadecimal. */
void sha256_finish(struct sha256 *sum, char text[SHA256_TEXT]);
