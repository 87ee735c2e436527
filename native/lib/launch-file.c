#include "lib/launch-file.h"

#include "lib/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without pointers: those would be set at each start of each program. */
static const struct {
  char name[15];
  unsigned char words;
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

/* ---- the index ---- */

/* A place holds an offset; that of an entry's start its verb, too. */
#define OFFSET_BITS 24
#define OFFSET_MASK ((1u << OFFSET_BITS) - 1)
_Static_assert(LAUNCHFILE_MAX <= OFFSET_MASK && VERBS <= 1u << (32 - OFFSET_BITS), "a place has no room");

/* More than most plans have. */
#define PLACES_AT_ONCE 1000

struct index {
  struct verb_range *range;
  uint32_t *place;
  size_t count, room;
};

static int put_place(struct index *index, size_t offset, enum verb verb) {
  if (index->count == index->room) {
    uint32_t *more = realloc(index->place, (index->room + PLACES_AT_ONCE) * sizeof *more);
    if (!more) return -1;
    index->place = more, index->room += PLACES_AT_ONCE;
  }
  index->place[index->count++] = (uint32_t)offset | (uint32_t)verb << OFFSET_BITS;
  return 0;
}

static void note_end(struct index *index, size_t first, enum verb verb) {
  struct verb_range *range = &index->range[verb];
  if (range->end == 0) range->first = (uint32_t)first;
  range->end = (uint32_t)index->count;
}

static enum verb verb_at(const struct launchfile *file, size_t position) { return (enum verb)(file->index[position] >> OFFSET_BITS); }

static const char *text_at(const struct launchfile *file, size_t position) { return file->bytes + (file->index[position] & OFFSET_MASK); }

size_t launchfile_places(const struct launchfile *file) { return file->count + 1; }

size_t launchfile_offset(const struct launchfile *file, size_t place) { return file->index[place] & OFFSET_MASK; }

static size_t places_of(enum verb verb) { return 1u + KNOWN[verb].words; }

/* Reads the entry at *position, and notes its places. */
static int read_entry(const struct launchfile *file, size_t *position, enum verb *verb, struct index *index, const char **problem) {
  size_t start = *position, first = index->count;
  const char *name = next_word(file, position);
  if (!name) return *problem = "no end entry", -1;
  *verb = verb_named(name, *verb);
  if (*verb == VERBS) return *problem = "unknown verb", -1;
  *problem = "too little memory";
  if (put_place(index, start, *verb) < 0) return -1;
  for (unsigned i = 0; i < KNOWN[*verb].words; i++) {
    if (put_place(index, *position, 0) < 0) return -1;
    if (!next_word(file, position)) return *problem = "missing word", -1;
  }
  return note_end(index, first, *verb), 0;
}

/* Each step of a run asks for its entries, so they are found once. */
static int read_entries(struct launchfile *file, const char **problem) {
  size_t position = sizeof LAUNCH_FILE_MAGIC;
  struct index index = {calloc(VERBS, sizeof *index.range), NULL, 0, 0};
  enum verb verb = V_END;
  if (!index.range || file->size > OFFSET_MASK) return free(index.range), *problem = "too large", -1;
  do {
    if (read_entry(file, &position, &verb, &index, problem) < 0) return free(index.place), free(index.range), -1;
  } while (verb != V_END);
  if (position != file->size) return free(index.place), free(index.range), *problem = "bytes after the end entry", -1;
  file->range = index.range;
  file->index = index.place;
  file->count = index.count - 1;
  return 0;
}

int launchfile_check(const char *bytes, size_t size, struct launchfile *file, const char **problem) {
  *file = (struct launchfile){.bytes = bytes, .size = size, .has_slots = memchr(bytes, PLACE_SLOT, size) != NULL};
  size_t position = 0;
  const char *magic = next_word(file, &position);
  if (!magic || strcmp(magic, LAUNCH_FILE_MAGIC) != 0) return *problem = "not a launch file of this version", -1;
  return read_entries(file, problem);
}

/* Returns the position of the next one. */
static size_t take_entry(const struct launchfile *file, size_t position, struct entry *entry) {
  size_t next = position + places_of(verb_at(file, position));
  entry->verb = verb_at(file, position);
  entry->start = text_at(file, position);
  entry->end = text_at(file, next);
  entry->next = next;
  for (size_t i = position + 1; i < next; i++) entry->word[i - position - 1] = text_at(file, i);
  return next;
}

int launchfile_next(const struct launchfile *file, size_t *position, struct entry *entry) {
  if (*position >= file->count) return 0;
  *position = take_entry(file, *position, entry);
  return 1;
}

int launchfile_next_of(const struct launchfile *file, enum verb verb, size_t *position, struct entry *entry) {
  if (file->count == 0) return 0; /* also before it is read */
  const struct verb_range *range = &file->range[verb];
  if (*position < range->first) *position = range->first;
  while (*position < range->end && verb_at(file, *position) != verb) *position += places_of(verb_at(file, *position));
  return *position < range->end ? *position = take_entry(file, *position, entry), 1 : 0;
}

int launchfile_find(const struct launchfile *file, enum verb verb, struct entry *entry) {
  size_t position = 0;
  return launchfile_next_of(file, verb, &position, entry);
}

int launchfile_has_namespaces(const struct launchfile *file) {
  struct entry engine = {.word = {""}};
  return !launchfile_find(file, V_ENGINE, &engine) || strcmp(engine.word[0], "none") != 0;
}

int launchfile_has_slots(const struct launchfile *file) { return file->has_slots; }

int launchfile_is_blank(const struct entry *zone) { return zone->word[0][0] == PLACE_SLOT; }

int launchfile_has_filter(const struct launchfile *file) {
  struct entry entry = {.word = {""}};
  return launchfile_find(file, V_SECCOMP, &entry) && strcmp(entry.word[0], "off") != 0;
}

static int parse_base(const char *word, int base, uint64_t max, uint64_t *number) {
  if (word[0] < '0' || word[0] > '9') return -1; /* strtoull would take blanks and signs */
  char *end;
  errno = 0;
  *number = strtoull(word, &end, base);
  return errno || *end || *number > max ? -1 : 0;
}

int parse_number(const char *word, uint64_t max, uint64_t *number) { return parse_base(word, 10, max, number); }

int take_number(const char **at, const char *end, uint64_t max, uint64_t *number) {
  const char *word = take_word(at, end);
  return word ? parse_number(word, max, number) : -1;
}

int parse_mode(const char *word, unsigned *mode) {
  uint64_t number;
  if (parse_base(word, 8, 01777, &number) < 0) return -1;
  *mode = (unsigned)number;
  return 0;
}

#define READ_AT_ONCE (64 << 10)

/* One byte more than a file has: then it need not be enlarged to see the end. Of all else it is not known. */
static size_t room_for(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && status.st_size < READ_AT_ONCE ? (size_t)status.st_size + 1 : READ_AT_ONCE;
}

char *read_all(int fd, size_t limit, size_t *size) {
  size_t room = room_for(fd);
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

const char *launchfile_read(int fd, struct launchfile *file) {
  size_t size;
  const char *problem = "";
  char *bytes = read_all(fd, LAUNCHFILE_MAX, &size);
  if (!bytes || launchfile_check(bytes, size, file, &problem) == 0) return bytes ? NULL : problem;
  return errno = EINVAL, problem;
}
