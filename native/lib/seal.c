#include "lib/seal.h"

#include "lib/files.h"
#include "lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- BLAKE2b ---- */

#define BLOCK 128

struct blake {
  uint64_t state[8], count;
  unsigned char block[BLOCK];
  size_t used;
};

static const uint64_t INITIAL[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                                    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static const unsigned char SIGMA[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static inline uint64_t turn(uint64_t word, int bits) { return (word >> bits) | (word << (64 - bits)); }

/* Both machines that this is made for are little-endian (src/os/native-programs.ts). */
static inline uint64_t load(const unsigned char *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* A macro on variables of their own, because the compiler keeps those in registers: half the time of a loop over an array. */
#define MIX(a, b, c, d, x, y) \
  (a += b + (x), d = turn(d ^ a, 32), c += d, b = turn(b ^ c, 24), a += b + (y), d = turn(d ^ a, 16), c += d, b = turn(b ^ c, 63))

static void compress(struct blake *blake, const unsigned char *block, int is_last) {
  uint64_t m[16];
  for (int i = 0; i < 16; i++) m[i] = load(block + 8 * i);
  const uint64_t *h = blake->state;
  uint64_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
  uint64_t v8 = INITIAL[0], v9 = INITIAL[1], v10 = INITIAL[2], v11 = INITIAL[3];
  uint64_t v12 = INITIAL[4] ^ blake->count, v13 = INITIAL[5], v14 = is_last ? ~INITIAL[6] : INITIAL[6], v15 = INITIAL[7];
#pragma GCC unroll 12
  for (int round = 0; round < 12; round++) {
    const unsigned char *s = SIGMA[round % 10];
    MIX(v0, v4, v8, v12, m[s[0]], m[s[1]]);
    MIX(v1, v5, v9, v13, m[s[2]], m[s[3]]);
    MIX(v2, v6, v10, v14, m[s[4]], m[s[5]]);
    MIX(v3, v7, v11, v15, m[s[6]], m[s[7]]);
    MIX(v0, v5, v10, v15, m[s[8]], m[s[9]]);
    MIX(v1, v6, v11, v12, m[s[10]], m[s[11]]);
    MIX(v2, v7, v8, v13, m[s[12]], m[s[13]]);
    MIX(v3, v4, v9, v14, m[s[14]], m[s[15]]);
  }
  const uint64_t low[8] = {v0, v1, v2, v3, v4, v5, v6, v7}, high[8] = {v8, v9, v10, v11, v12, v13, v14, v15};
  for (int i = 0; i < 8; i++) blake->state[i] ^= low[i] ^ high[i];
}

static void begin(struct blake *blake) {
  memset(blake, 0, sizeof *blake);
  memcpy(blake->state, INITIAL, sizeof INITIAL);
  blake->state[0] ^= 0x01010000 ^ MAC_BYTES; /* no key, fanout 1, depth 1, length of the digest */
}

/* The last block is kept back: it is compressed in another way. */
static void add(struct blake *blake, const unsigned char *bytes, size_t size) {
  for (; blake->used == 0 && size > BLOCK; bytes += BLOCK, size -= BLOCK) {
    blake->count += BLOCK;
    compress(blake, bytes, 0);
  }
  while (size) {
    if (blake->used == BLOCK) {
      blake->count += BLOCK;
      compress(blake, blake->block, 0);
      blake->used = 0;
    }
    size_t part = size < BLOCK - blake->used ? size : BLOCK - blake->used;
    memcpy(blake->block + blake->used, bytes, part);
    blake->used += part, bytes += part, size -= part;
  }
}

static void finish(struct blake *blake, unsigned char digest[MAC_BYTES]) {
  blake->count += blake->used;
  memset(blake->block + blake->used, 0, BLOCK - blake->used);
  compress(blake, blake->block, 1);
  for (int i = 0; i < MAC_BYTES; i++) digest[i] = (unsigned char)(blake->state[i / 8] >> (8 * (i % 8)));
}

/* ---- HMAC ---- */

static void begin_with(struct blake *blake, const unsigned char key[SECRET_BYTES], unsigned char pad) {
  unsigned char block[BLOCK];
  memset(block, pad, sizeof block);
  for (int i = 0; i < SECRET_BYTES; i++) block[i] ^= key[i];
  begin(blake);
  add(blake, block, sizeof block);
}

/*
 * HMAC (RFC 2104) with BLAKE2b-512 (RFC 7693): `createHmac('blake2b512', key)` of node. Three cycles a byte in plain C; SHA-256 without
 * special instructions takes ten. It covers the purpose with its NUL (nothing for NULL), then the bytes.
 */
static void mac_for(const unsigned char key[SECRET_BYTES], const char *purpose, const void *bytes, size_t size, unsigned char tag[MAC_BYTES]) {
  struct blake blake;
  begin_with(&blake, key, 0x36);
  if (purpose) add(&blake, (const unsigned char *)purpose, strlen(purpose) + 1);
  add(&blake, bytes, size);
  finish(&blake, tag);
  begin_with(&blake, key, 0x5c);
  add(&blake, tag, MAC_BYTES);
  finish(&blake, tag);
}

/* ---- the secret ---- */

static int is_ours(int fd, mode_t type, mode_t forbidden) {
  struct stat status;
  return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == geteuid() && (status.st_mode & forbidden) == 0 &&
         (type != S_IFREG || (status.st_nlink == 1 && status.st_size == SECRET_BYTES));
}

/* Closes what it opened and does not accept. */
static int open_ours(int parent, const char *name, int flags, mode_t type, mode_t forbidden) {
  int fd = openat(parent, name, flags | O_CLOEXEC);
  return fd < 0 || is_ours(fd, type, forbidden) ? fd : close_with(fd, -1);
}

static int read_from(int directory, unsigned char secret[SECRET_BYTES]) {
  int fd = open_ours(directory, "key", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, S_IFREG, 0177);
  if (fd < 0) return -1;
  ssize_t got = read(fd, secret, SECRET_BYTES);
  return close_with(fd, got == SECRET_BYTES ? 0 : -1);
}

#define OWN_DIRECTORY "llm-do"

/* In `base`/llm-do. The base itself must be writable by this user alone, too: any other writer could rename. */
static int read_below(const char *base, mode_t forbidden, unsigned char secret[SECRET_BYTES]) {
  int parent = open_ours(AT_FDCWD, base, O_PATH | O_DIRECTORY, S_IFDIR, forbidden);
  if (parent < 0) return -1;
  int directory = close_with(parent, open_ours(parent, OWN_DIRECTORY, O_PATH | O_DIRECTORY | O_NOFOLLOW, S_IFDIR, 077));
  return directory < 0 ? -1 : close_with(directory, read_from(directory, secret));
}

/* Below /tmp or in a home a command may have made the directory, and the key in it. */
int secret_read_in(const char *place, unsigned char secret[SECRET_BYTES]) {
  char base[PATH_MAX];
  const char *slash = strrchr(place, '/');
  if (!slash || strcmp(slash, "/" OWN_DIRECTORY) != 0 || (size_t)(slash - place) >= sizeof base) return -1;
  memcpy(base, place, (size_t)(slash - place));
  base[slash - place] = 0;
  return read_below(base, 022, secret);
}

int secret_read(unsigned char secret[SECRET_BYTES]) {
  char base[64];
  if (geteuid() == 0) return read_below("/run", 022, secret);
  const char *runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime && runtime[0] == '/' && read_below(runtime, 022, secret) == 0) return 0;
  snprintf(base, sizeof base, "/run/user/%u", (unsigned)geteuid());
  return read_below(base, 077, secret);
}

/* ---- seals ---- */

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static int is_tag(const char *text, const unsigned char tag[MAC_BYTES]) {
  unsigned char difference = 0;
  if (strlen(text) != MAC_TEXT - 1) return 0;
  for (int i = 0; i < MAC_BYTES; i++) difference |= (unsigned char)(tag[i] ^ (digit(text[2 * i]) * 16 + digit(text[2 * i + 1])));
  return strspn(text, "0123456789abcdef") == MAC_TEXT - 1 && difference == 0;
}

static int is_sealed_for(const char *text, const char *purpose, const void *bytes, size_t size) {
  unsigned char secret[SECRET_BYTES], tag[MAC_BYTES];
  if (secret_read(secret) < 0) return 0;
  mac_for(secret, purpose, bytes, size, tag);
  return is_tag(text, tag);
}

int is_sealed(const char *text, const void *bytes, size_t size) { return is_sealed_for(text, NULL, bytes, size); }

void seal_for(const unsigned char *secret, const char *purpose, const void *bytes, size_t size, char text[MAC_TEXT]) {
  unsigned char tag[MAC_BYTES] = {0};
  if (secret) mac_for(secret, purpose, bytes, size, tag);
  put_hex(text, tag, MAC_BYTES);
  text[MAC_TEXT - 1] = 0;
}

const char *text_end_sealed(FILE *out, const unsigned char *secret, const char *purpose, size_t *size) {
  char seal[MAC_TEXT];
  const char *bytes = text_end(size);
  if (!bytes) return NULL;
  seal_for(secret, purpose, bytes, *size, seal);
  fwrite(seal, 1, sizeof seal, out);
  return text_end(size);
}

int seal_take(const char *bytes, size_t *size, const char *purpose, int *is_sealed) {
  if (*size < MAC_TEXT || bytes[*size - 1]) return errno = EBADMSG, -1;
  *size -= MAC_TEXT;
  *is_sealed = is_sealed_for(bytes + *size, purpose, bytes, *size);
  return 0;
}
