#include "lib/launch-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  int words;
} VERB_TABLE[VERBS] = {
    [V_ENGINE] = {"engine", 1},     [V_WORD] = {"word", 1},         [V_IDENTITY] = {"identity", 3},
    [V_HOSTNAME] = {"hostname", 1}, [V_NET] = {"net", 1},           [V_DIRECTORY] = {"directory", 2},
    [V_SYMLINK] = {"symlink", 2},   [V_FILE] = {"file", 3},         [V_TMPFS] = {"tmpfs", 4},
    [V_BIND] = {"bind", 2},         [V_ZONE] = {"zone", 6},         [V_PROTECT] = {"protect", 3},
    [V_GIT] = {"git", 3},           [V_LINKED] = {"linked", 2},     [V_READONLY] = {"readonly", 1}, [V_MASK] = {"mask", 1},         [V_LANDLOCK] = {"landlock", 1},
    [V_SECCOMP] = {"seccomp", 1},   [V_RLIMIT] = {"rlimit", 3},     [V_WORKDIR] = {"workdir", 1},
    [V_TERMINAL] = {"terminal", 1}, [V_AFFINITY] = {"affinity", 1}, [V_CGROUP] = {"cgroup", 1},
    [V_SET] = {"set", 2},           [V_NARROW] = {"narrow", 2},     [V_WATCH] = {"watch", 1},
    [V_CPU_TIME] = {"cpu-time", 1}, [V_DEADLINE] = {"deadline", 1}, [V_RUNS] = {"runs", 1},
    [V_PROFILE] = {"profile", 1},   [V_CHECK] = {"check", 1},       [V_KEY] = {"key", 1},
    [V_AT] = {"at", 2},             [V_CONTENT] = {"content", 2},   [V_VARIABLE] = {"variable", 2},
    [V_LOCALE] = {"locale", 2},     [V_INHERIT] = {"inherit", 1},   [V_POOL] = {"pool", 1},
    [V_CAPTURE] = {"capture", 1},   [V_RESULT] = {"result", 2},     [V_END] = {"end", 0},
};

static enum verb verb_named(const char *name) {
  for (int verb = 0; verb < VERBS; verb++)
    if (VERB_TABLE[verb].name[0] == name[0] && strcmp(VERB_TABLE[verb].name, name) == 0) return (enum verb)verb;
  return VERBS;
}

/* The word at *position, or NULL when the bytes end before its NUL. */
static const char *next_word(const struct launchfile *file, size_t *position) {
  if (*position >= file->size) return NULL;
  const char *word = file->bytes + *position;
  const char *end = memchr(word, 0, file->size - *position);
  if (!end) return NULL;
  *position = (size_t)(end - file->bytes) + 1;
  return word;
}

static int read_record(const struct launchfile *file, size_t *position, struct entry *entry, const char **problem) {
  const char *name = next_word(file, position);
  if (!name) return *problem = "no end entry", -1;
  entry->verb = verb_named(name);
  if (entry->verb == VERBS) return *problem = "unknown verb", -1;
  for (int i = 0; i < VERB_TABLE[entry->verb].words; i++) {
    entry->word[i] = next_word(file, position);
    if (!entry->word[i]) return *problem = "missing word", -1;
  }
  return 0;
}

/* Each step of a run asks for its entries, so they are found once. Room for one more, or NULL. */
static struct entry *extend(struct entry *entries, size_t count) {
  if (count % 256) return entries;
  struct entry *more = realloc(entries, (count + 256) * sizeof *more);
  if (!more) free(entries);
  return more;
}

static int read_records(struct launchfile *file, const char **problem) {
  size_t position = sizeof LAUNCHFILE_MAGIC;
  struct entry *entries = NULL;
  for (file->count = 0;; file->count++) {
    struct entry entry = {0};
    if (read_record(file, &position, &entry, problem) < 0) return free(entries), -1;
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
  if (!magic || strcmp(magic, LAUNCHFILE_MAGIC) != 0) return *problem = "not a launch file of this version", -1;
  return read_records(file, problem);
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
