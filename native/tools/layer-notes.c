#include "tools/layer-notes.h"

#include "lib/arena.h"
#include "lib/files.h"
#include "lib/layer.h"
#include "lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NOTES "notes"
#define NOTES_MAX (1u << 30)
#define WORDS 4

struct note {
  struct zone_path path; /* first: by_zone_path compares it */
  struct timespec time;
};

static int by_place_and_time(const void *a, const void *b) {
  const struct note *first = a, *second = b;
  int order = by_zone_path(a, b);
  if (order) return order;
  if (first->time.tv_sec != second->time.tv_sec) return first->time.tv_sec < second->time.tv_sec ? -1 : 1;
  return first->time.tv_nsec == second->time.tv_nsec ? 0 : first->time.tv_nsec < second->time.tv_nsec ? -1 : 1;
}

int notes_have(const struct notes *notes, struct zone_path path, struct timespec time) {
  struct note wanted = {path, time};
  return notes->count > 0 && bsearch(&wanted, notes->item, notes->count, sizeof wanted, by_place_and_time) != NULL;
}

/* 0 where the next words are no note. */
static int read_note(const char **at, const char *end, struct note *note) {
  const char *word[WORDS];
  uint64_t zone, seconds, nanoseconds;
  for (int i = 0; i < WORDS; i++)
    if (!(word[i] = take_word(at, end))) return 0;
  if (parse_number(word[0], SIZE_MAX, &zone) < 0 || parse_number(word[2], INT64_MAX, &seconds) < 0 || parse_number(word[3], 999999999, &nanoseconds) < 0) return 0;
  *note = (struct note){{(size_t)zone, word[1]}, {(time_t)seconds, (long)nanoseconds}};
  return 1;
}

/* A note that was cut at the end, by a power cut or a full disk, is left out. */
static int parse(const char *bytes, size_t size, struct notes *notes) {
  const char *at = bytes;
  for (struct note note; read_note(&at, bytes + size, &note); notes->length = (size_t)(at - bytes))
    if (append(notes->item, notes->count, &note) < 0) return -1;
  return 0;
}

int notes_read(int layer, struct notes *notes) {
  *notes = (struct notes){NULL, 0, 0};
  size_t size;
  int fd = open_beneath(layer, NOTES, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  char *bytes = read_all(fd, NOTES_MAX, &size); /* the notes point into it */
  close_with(fd, 0);
  if (!bytes || parse(bytes, size, notes) < 0) return -1;
  if (notes->count) qsort(notes->item, notes->count, sizeof *notes->item, by_place_and_time);
  return 0;
}

void note_put(FILE *out, struct zone_path path, struct timespec time) {
  fprintf(out, "%zu%c%s%c%lld%c%ld%c", path.zone, 0, path.path, 0, (long long)time.tv_sec, 0, time.tv_nsec, 0);
}

/* In the place of what was cut: behind it nothing could be read. */
static int write_at(int fd, const char *bytes, size_t size, size_t at) {
  if (ftruncate(fd, (off_t)at) < 0 || lseek(fd, (off_t)at, SEEK_SET) < 0) return -1;
  if (write_all(fd, bytes, size) == 0) return 0;
  int error = errno;
  (void)!ftruncate(fd, (off_t)at); /* else the next one does it */
  return errno = error, -1;
}

int notes_add(int layer) {
  size_t size;
  struct notes before;
  const char *bytes = text_end(&size);
  if (!bytes || notes_read(layer, &before) < 0) return -1;
  free(before.item);
  int fd = openat(layer, NOTES, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  return close_with(fd, fd < 0 ? -1 : write_at(fd, bytes, size, before.length));
}
