/*
 * The launch file: words ended by NUL, first LAUNCH_FILE_MAGIC, last "end". Each entry is a verb and a fixed number of
 * words (native/contract.yaml). Written by src/backends/namespace/launch-file.ts; read by launch, the stager and init.
 */
#pragma once

#include "lib/contract.h"

#include <stddef.h>
#include <stdint.h>

#define LAUNCHFILE_MAX (4u << 20) /* bytes; a plan with a thousand zones has 200 KiB */

struct entry {
  enum verb verb;
  const char *start, *end; /* its bytes */
  size_t next; /* position of the one behind it */
  const char *word[ENTRY_WORDS_MAX];
};

/* Places in the index: where the entries of a verb begin and end. The same = there are none. */
struct verb_range {
  uint32_t first, end;
};

struct launchfile {
  const char *bytes;
  size_t size;
  /* For each entry its verb and where it starts, then where each word does; `end` is the last one. Small (lib/pages.h), and never freed. */
  const uint32_t *index;
  size_t count; /* of what is in the index, without `end` */
  const struct verb_range *range; /* of each verb */
  int has_slots;
};

/* Checks the whole of `bytes`: magic, verbs, word counts, end. Returns 0, or -1 with the reason in *problem. */
int launchfile_check(const char *bytes, size_t size, struct launchfile *file, const char **problem);

/* Steps through the entries of a checked file: start with *position = 0, a place in the index; returns 0 at the end. */
int launchfile_next(const struct launchfile *file, size_t *position, struct entry *entry);

/* The same of that verb's entries alone. */
int launchfile_next_of(const struct launchfile *file, enum verb verb, size_t *position, struct entry *entry);

/* The first entry of that verb, or 0. */
int launchfile_find(const struct launchfile *file, enum verb verb, struct entry *entry);

/* Number of places in the index, that of `end` among them, and the offset in the bytes that one of them holds. */
size_t launchfile_places(const struct launchfile *file);
size_t launchfile_offset(const struct launchfile *file, size_t place);

/* Whether the sandbox has its own namespaces and its own tree: all engines but `none`. */
int launchfile_has_namespaces(const struct launchfile *file);

/* Whether it is a plan for any directory whose slots are not filled: nothing but a blank sandbox can be built from it. */
int launchfile_has_slots(const struct launchfile *file);
/* Whether the directory of this V_ZONE entry is one of them, which comes with the command. */
int launchfile_is_blank(const struct entry *zone);

/* Whether a filter of system calls was asked for: a SIGSYS is its doing. */
int launchfile_has_filter(const struct launchfile *file);

/* A decimal number of at most `max`; -1 for anything else. */
int parse_number(const char *word, uint64_t max, uint64_t *number);
/* The word at *at as one (lib/text.h); -1 also where none is left before `end`. */
int take_number(const char **at, const char *end, uint64_t max, uint64_t *number);
/* Octal permission bits. */
int parse_mode(const char *word, unsigned *mode);

/* Reads all of `fd` (file, pipe or socket) into new memory; NULL with errno, EFBIG above the limit. */
char *read_all(int fd, size_t limit, size_t *size);
/* A whole launch file. NULL, or what is wrong with it, with EINVAL; "": it cannot be read, with errno. */
const char *launchfile_read(int fd, struct launchfile *file);
