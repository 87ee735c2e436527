/*
 * Launch files that the client may use without asking node: what they were made for, and whether that still holds.
 * src/launch-cache/ writes them; both sides compute the same words.
 */
#pragma once

#include "lib/launch-file.h"

#include <sys/types.h>

#define KEY_WORDS_MAX 512
#define KEY_BYTES_MAX (64 << 10)

/* Dependencies of a plan other than files: version, host, caller, options. One list of words, compared whole. */
struct key {
  size_t used;
  int count;
  char bytes[KEY_BYTES_MAX]; /* each word ended by NUL */
};

/* All return -1 when the key is full: then nothing is cached. */
int key_add(struct key *key, const char *word);
int key_add_bytes(struct key *key, const char *bytes, size_t length);
int key_add_number(struct key *key, unsigned long long number);
/* The words of another key from the offset `from` to `end`. */
int key_copy(struct key *key, const struct key *other, size_t from, size_t end);
/* Where the next word goes, for what is read there: key_room bytes and a NUL. Then key_took says how long it is. */
char *key_end(struct key *key);
size_t key_room(const struct key *key);
int key_took(struct key *key, size_t length);

/* FNV-1a, 64 bits: names the file, no more. */
uint64_t key_sum(const struct key *key);

/* Opens and checks the file of that key in the cache directory: owner, modes, seal (lib/seal.h), key. Whether what it was made from is
 * still on disk is looked at right before the command starts (runner/freshness.h).
 * Returns a descriptor at offset 0 and the content, or -1: not there, or not ours. */
int cached_open(const char *directory, const struct key *key, struct launchfile *file);

/* Does it have that seal? All of it is covered by it, so two files with one seal are the same. */
int cached_has_seal(const struct launchfile *file, const char *seal, size_t length);

/* Is it of that type (S_IFDIR, S_IFREG), our own, and out of everybody else's reach? */
int cached_is_private(int fd, mode_t type);

/* Is it on disk still as this V_AT or V_CONTENT record of a checked file says? */
int guard_holds(const struct entry *entry);

/* Reads the state of `path`, as in V_AT and V_CONTENT records. 0, or -1 when it cannot be read. */
int identity_at(const char *path, char *text, size_t room);
