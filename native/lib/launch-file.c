#include "lib/launch-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  int words;
} KNOWN[VERBS] = {
#define ROW(verb, name, words) [verb] = {name, words},
    VERB_TABLE(ROW)
#undef ROW
};

/* Most entries have the verb of the one before. */
static enum verb verb_named(const char *name, enum verb before) {
  if (strcmp(KNOWN[before].name, name) == 0) return before;
  for (int verb = 0; verb < VERBS; verb++)
    if (KNOWN[verb].name[0] == name[0] && strcmp(KNOWN[verb].name, name) == 0) return (enum verb)verb;
  return VERBS;
}

/* The word at *position, or NULL when the bytes end before its NUL. Most words are so short that a call of memchr takes longer. */
static const char *next_word(const struct launchfile *file, size_t *position) {
  const char *word = file->bytes + *position, *end = word, *last = file->bytes + file->size;
  while (end < last && *end) end++;
  if (end == last) return NULL;
  *position = (size_t)(end - file->bytes) + 1;
  return word;
}

static int read_entry(const struct launchfile *file, size_t *position, struct entry *entry, const char **problem) {
  const char *name = next_word(file, position);
  if (!name) return *problem = "no end entry", -1;
  entry->verb = verb_named(name, entry->verb);
  if (entry->verb == VERBS) return *problem = "unknown verb", -1;
  for (int i = 0; i < KNOWN[entry->verb].words; i++) {
    entry->word[i] = next_word(file, position);
    if (!entry->word[i]) return *problem = "missing word", -1;
  }
  return 0;
}

/* More than most plans have. */
#define ENTRIES_AT_ONCE 512

/* Each step of a run asks for its entries, so they are found once. Room for one more, or NULL. */
static struct entry *extend(struct entry *entries, size_t count) {
  if (count % ENTRIES_AT_ONCE) return entries;
  struct entry *more = realloc(entries, (count + ENTRIES_AT_ONCE) * sizeof *more);
  if (!more) free(entries);
  return more;
}

static int read_entrys(struct launchfile *file, const char **problem) {
  size_t position = sizeof LAUNCH_FILE_MAGIC;
  struct entry *entries = NULL;
  for (file->count = 0;; file->count++) {
    struct entry entry = {.verb = file->count ? entries[file->count - 1].verb : V_END};
    if (read_entry(file, &position, &entry, problem) < 0) return free(entries), -1;
    if (entry.verb == V_END) break;
    entries = extend(entries, file->count);
    if (!entries) return *problem = "too little memory", -1;
    entry.end = file->bytes + position;
    entries[file->count] = entry;
  }
  if (position != file->size) return free(entries), *problem = "bytes after the end entry", -1;
  file->entries = entries;
  return 0;
}

int launchfile_check(const char *bytes, size_t size, struct launchfile *file, const char **problem) {
  *file = (struct launchfile){.bytes = bytes, .size = size};
  size_t position = 0;
  const char *magic = next_word(file, &position);
  if (!magic || strcmp(magic, LAUNCH_FILE_MAGIC) != 0) return *problem = "not a launch file of this version", -1;
  return read_entrys(file, problem);
}

int launchfile_next(const struct launchfile *file, size_t *position, struct entry *entry) {
  if (*position >= file->count) return 0;
  *entry = file->entries[(*position)++];
  return 1;
}

int launchfile_find(const struct launchfile *file, enum verb verb, struct entry *entry) {
  for (size_t i = 0; i < file->count; i++)
    if (file->entries[i].verb == verb) return *entry = file->entries[i], 1;
  return 0;
}

int launchfile_has_namespaces(const struct launchfile *file) {
  struct entry engine;
  return !launchfile_find(file, V_ENGINE, &engine) || strcmp(engine.word[0], "none") != 0;
}

static int parse_base(const char *word, int base, uint64_t max, uint64_t *number) {
  if (word[0] < '0' || word[0] > '9') return -1; /* strtoull would take blanks and signs */
  char *end;
  errno = 0;
  *number = strtoull(word, &end, base);
  return errno || *end || *number > max ? -1 : 0;
}

int parse_number(const char *word, uint64_t max, uint64_t *number) { return parse_base(word, 10, max, number); }

int parse_mode(const char *word, unsigned *mode) {
  uint64_t number;
  if (parse_base(word, 8, 01777, &number) < 0) return -1;
  *mode = (unsigned)number;
  return 0;
}

char *read_all(int fd, size_t limit, size_t *size) {
  size_t room = 64 << 10;
  char *bytes = malloc(room);
  *size = 0;
  while (bytes) {
    ssize_t got = read(fd, bytes + *size, room - *size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    if (got == 0) return bytes;
    *size += (size_t)got;
    if (*size > limit) {
      errno = EFBIG;
      break;
    }
    if (*size == room) {
      char *more = realloc(bytes, room *= 2);
      if (!more) break;
      bytes = more;
    }
  }
  free(bytes);
  return NULL;
}
