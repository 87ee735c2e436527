#include "lib/sha256.h"

#include "lib/text.h"

#include <string.h>

#define ROUNDS 64

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The same of the square roots of the first eight. */
static const uint32_t INITIAL[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t turn(uint32_t word, int bits) { return (word >> bits) | (word << (32 - bits)); }

static uint32_t load(const unsigned char *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static void expand(const unsigned char *block, uint32_t w[ROUNDS]) {
  for (int i = 0; i < 16; i++) w[i] = load(block + 4 * i);
  for (int i = 16; i < ROUNDS; i++) {
    uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3), s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}

static void compress(struct sha256 *sum, const unsigned char *block) {
  uint32_t w[ROUNDS], v[8];
  expand(block, w);
  memcpy(v, sum->state, sizeof v);
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t a = v[0], e = v[4];
    uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
    uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) sum->state[i] += v[i];
}

void sha256_begin(struct sha256 *sum) {
  memset(sum, 0, sizeof *sum);
  memcpy(sum->state, INITIAL, sizeof INITIAL);
}

void sha256_add(struct sha256 *sum, const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  while (size) {
    size_t used = sum->size % SHA256_BLOCK, part = size < SHA256_BLOCK - used ? size : SHA256_BLOCK - used;
    memcpy(sum->block + used, at, part);
    sum->size += part, at += part, size -= part;
    if (used + part == SHA256_BLOCK) compress(sum, sum->block);
  }
}

void sha256_finish(struct sha256 *sum, char text[SHA256_TEXT]) {
  static const unsigned char PADDING[SHA256_BLOCK] = {0x80};
  unsigned char bits[8];
  for (int i = 0; i < 8; i++) bits[i] = (unsigned char)((sum->size * 8) >> (56 - 8 * i));
  size_t used = sum->size % SHA256_BLOCK, room = SHA256_BLOCK - sizeof bits;
  sha256_add(sum, PADDING, used < room ? room - used : room + SHA256_BLOCK - used);
  sha256_add(sum, bits, sizeof bits);
  for (int i = 0; i < 8; i++) {
    const unsigned char word[] = {(unsigned char)(sum->state[i] >> 24), (unsigned char)(sum->state[i] >> 16), (unsigned char)(sum->state[i] >> 8), (unsigned char)sum->state[i]};
    put_hex(text + 8 * i, word, sizeof word);
  }
  text[SHA256_TEXT - 1] = 0;
}
