#include "lib/launch-cache.h"

#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/seal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

char *key_end(struct key *key) { return key->bytes + key->used; }

size_t key_room(const struct key *key) { return key->used < sizeof key->bytes ? sizeof key->bytes - key->used - 1 : 0; }

int key_took(struct key *key, size_t length) {
  if (key->count == KEY_WORDS_MAX || key->used == sizeof key->bytes || length > key_room(key)) return -1;
  key_end(key)[length] = 0;
  key->count++;
  key->used += length + 1;
  return 0;
}

int key_add_bytes(struct key *key, const char *bytes, size_t length) {
  if (length > key_room(key)) return -1;
  memmove(key_end(key), bytes, length);
  return key_took(key, length);
}

int key_add(struct key *key, const char *word) { return key_add_bytes(key, word, strlen(word)); }

int key_add_number(struct key *key, unsigned long long number) {
  char text[24];
  snprintf(text, sizeof text, "%llu", number);
  return key_add(key, text);
}

int key_copy(struct key *key, const struct key *other, size_t from, size_t end) {
  if (end - from > sizeof key->bytes - key->used) return -1;
  memcpy(key->bytes + key->used, other->bytes + from, end - from);
  key->used += end - from;
  for (size_t at = from; at < end; at++) key->count += other->bytes[at] == 0;
  return key->count > KEY_WORDS_MAX ? -1 : 0;
}

static uint64_t sum_bytes(const char *bytes, size_t size) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3u;
  return sum;
}

uint64_t key_sum(const struct key *key) { return sum_bytes(key->bytes, key->used); }

static unsigned long long nanoseconds(struct timespec time) {
  return (unsigned long long)time.tv_sec * 1000000000u + (unsigned long long)time.tv_nsec;
}

/* Numbers with colons between them. Each run asks for some hundred of these, and printf takes longer than the kernel does. */
static int describe(const unsigned long long *numbers, size_t count, char *text, size_t room) {
  char *at = text;
  if (room < count * sizeof "18446744073709551615") return -1;
  for (size_t i = 0; i < count; i++) {
    char digits[24], *digit = digits;
    for (unsigned long long left = numbers[i]; digit == digits || left; left /= 10) *digit++ = (char)('0' + left % 10);
    while (digit > digits) *at++ = *--digit;
    *at++ = ':';
  }
  *--at = 0;
  return (int)(at - text);
}

static int describe_status(const struct stat *status, char *text, size_t room) {
  unsigned long long numbers[] = {status->st_dev, status->st_ino, status->st_mode, status->st_uid, status->st_gid};
  return describe(numbers, sizeof numbers / sizeof *numbers, text, room);
}

static int absent(int error, char *text, size_t room) {
  if (error == ENOENT || error == ENOTDIR) return copy_text(text, room, "missing"), 0;
  if (error == EACCES) return copy_text(text, room, "denied"), 0;
  return -1;
}

int identity_at(const char *path, char *text, size_t room) {
  struct stat status;
  if (lstat(path, &status) < 0) return absent(errno, text, room);
  int used = describe_status(&status, text, room);
  if (used < 0 || !S_ISLNK(status.st_mode)) return used < 0 ? -1 : 0;
  text[used++] = '>';
  if (stat(path, &status) < 0) return absent(errno, text + used, room - (size_t)used);
  return describe_status(&status, text + used, room - (size_t)used) < 0 ? -1 : 0;
}

static int identity_of_content(const char *path, char *text, size_t room) {
  struct stat status;
  if (stat(path, &status) < 0) return absent(errno, text, room);
  unsigned long long numbers[] = {status.st_dev, status.st_ino, status.st_mode, status.st_uid, (unsigned long long)status.st_size,
                                  nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
  return describe(numbers, sizeof numbers / sizeof *numbers, text, room) < 0 ? -1 : 0;
}

/* ---- the file ---- */

int cached_is_private(int fd, mode_t type) {
  struct stat status;
  return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

static int open_file(const char *directory, const struct key *key) {
  char name[20];
  snprintf(name, sizeof name, "%016llx", (unsigned long long)key_sum(key));
  int parent = openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (parent < 0) return -1;
  int fd = cached_is_private(parent, S_IFDIR) ? openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
  close(parent);
  if (fd < 0 || cached_is_private(fd, S_IFREG)) return fd;
  return close_with(fd, -1);
}

/* The seal stands in the first record and covers everything after it. */
/* Is all of it node's work for this user? */
static int cached_is_sealed(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  if (!launchfile_next(file, &position, &entry) || entry.verb != V_CHECK) return 0;
  return is_sealed(entry.word[0], entry.end, file->size - (size_t)(entry.end - file->bytes));
}

int cached_has_seal(const struct launchfile *file, const char *seal, size_t length) {
  struct entry check;
  return launchfile_find(file, V_CHECK, &check) && strlen(check.word[0]) == length && memcmp(check.word[0], seal, length) == 0;
}

/* Only the system or the caller can have put it there. */
static int is_engine(const char *path) {
  struct stat status;
  return path[0] == '/' && stat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 022) == 0 &&
         (status.st_uid == 0 || status.st_uid == geteuid());
}

/* node writes a plan with V_AT and V_CONTENT records, and with programs of root's or the caller's only: any other file is refused. */
static int is_sound(const struct launchfile *file) {
  struct entry at, content, engine, word;
  if (!launchfile_find(file, V_AT, &at) || !launchfile_find(file, V_CONTENT, &content) || !launchfile_find(file, V_ENGINE, &engine)) return 0;
  if (strcmp(engine.word[0], "unshare") == 0) return 1;
  return strcmp(engine.word[0], "bwrap") == 0 && launchfile_find(file, V_WORD, &word) && is_engine(word.word[0]);
}

static int is_for(const struct launchfile *file, const struct key *key) {
  struct entry entry;
  size_t position = 0, used = 0;
  while (launchfile_next_of(file, V_KEY, &position, &entry)) {
    if (used == key->used || strcmp(entry.word[0], key->bytes + used) != 0) return 0;
    used += strlen(key->bytes + used) + 1;
  }
  return used == key->used;
}

int guard_holds(const struct entry *entry) {
  char identity[256];
  int failed = entry->verb == V_AT ? identity_at(entry->word[0], identity, sizeof identity)
                                  : identity_of_content(entry->word[0], identity, sizeof identity);
  return failed == 0 && strcmp(identity, entry->word[1]) == 0;
}

int cached_open(const char *directory, const struct key *key, struct launchfile *file) {
  const char *problem;
  size_t size;
  int fd = open_file(directory, key);
  if (fd < 0) return -1;
  char *bytes = read_all(fd, LAUNCHFILE_MAX, &size);
  if (bytes && launchfile_check(bytes, size, file, &problem) == 0 && cached_is_sealed(file) && is_sound(file) && is_for(file, key) &&
      lseek(fd, 0, SEEK_SET) == 0)
    return fd;
  return close_with(fd, -1);
}
