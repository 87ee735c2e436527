#include "tools/layer-known.h"

#include "lib/arena.h"
#include "lib/launch-file.h"
#include "tools/layer-changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#define KNOWN "known"
#define KNOWN_MAX (1u << 30)
#define FIELDS 4

struct known_item {
  size_t zone;
  const char *path;
  struct timespec time;
};

static int by_place(const void *a, const void *b) {
  const struct known_item *first = a, *second = b;
  if (first->zone != second->zone) return first->zone < second->zone ? -1 : 1;
  int order = strcmp(first->path, second->path);
  if (order) return order;
  if (first->time.tv_sec != second->time.tv_sec) return first->time.tv_sec < second->time.tv_sec ? -1 : 1;
  return first->time.tv_nsec == second->time.tv_nsec ? 0 : first->time.tv_nsec < second->time.tv_nsec ? -1 : 1;
}

int known_has(const struct known *known, size_t zone, const char *path, const struct timespec *time) {
  struct known_item wanted = {zone, path, *time};
  return known->count > 0 && bsearch(&wanted, known->item, known->count, sizeof wanted, by_place) != NULL;
}

/* 1, 0 when the words are no item, -1 with errno. */
static int add_item(struct known *known, const char *const *word) {
  uint64_t zone, seconds, nanoseconds;
  if (parse_number(word[0], SIZE_MAX, &zone) < 0 || parse_number(word[2], INT64_MAX, &seconds) < 0 || parse_number(word[3], 999999999, &nanoseconds) < 0) return 0;
  struct known_item *more = grow(known->item, known->count, sizeof *more);
  if (!more) return -1;
  known->item = more;
  known->item[known->count++] = (struct known_item){(size_t)zone, word[1], {(time_t)seconds, (long)nanoseconds}};
  return 1;
}

/* An item that was cut at the end, by a power cut or a full disk, is left out: that makes a conflict, and loses nothing. */
static int parse(const char *bytes, size_t size, struct known *known) {
  const char *word[FIELDS] = {0}, *at = bytes, *end = bytes + size;
  for (;;) {
    for (int i = 0; i < FIELDS; i++) {
      const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
      if (!nul) return 0;
      word[i] = at;
      at = nul + 1;
    }
    int is_item = add_item(known, word);
    if (is_item <= 0) return is_item;
    known->length = (size_t)(at - bytes);
  }
}

int known_read(int layer, struct known *known) {
  *known = (struct known){NULL, 0, 0};
  size_t size;
  int fd = open_beneath(layer, KNOWN, O_RDONLY);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  char *bytes = read_all(fd, KNOWN_MAX, &size); /* the items point into it */
  close(fd);
  if (!bytes || parse(bytes, size, known) < 0) return -1;
  if (known->count) qsort(known->item, known->count, sizeof *known->item, by_place);
  return 0;
}

int known_begin(struct known_out *out) {
  out->stream = open_memstream(&out->bytes, &out->size);
  return out->stream ? 0 : -1;
}

void known_put(struct known_out *out, size_t zone, const char *path, const struct stat *status) {
  fprintf(out->stream, "%zu%c%s%c%lld%c%ld%c", zone, 0, path, 0, (long long)status->st_ctim.tv_sec, 0, status->st_ctim.tv_nsec, 0);
}

static int write_at(int fd, const char *bytes, size_t size, size_t at) {
  for (ssize_t done; size > 0; bytes += done, size -= (size_t)done, at += (size_t)done)
    if ((done = pwrite(fd, bytes, size, (off_t)at)) < 0) return -1;
  return 0;
}

/* In the place of what was cut: behind it nothing could be read. */
static int append(int layer, const char *bytes, size_t size) {
  struct known before;
  if (known_read(layer, &before) < 0) return -1;
  free(before.item);
  int fd = openat(layer, KNOWN, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int done = fd < 0 || ftruncate(fd, (off_t)before.length) < 0 ? -1 : write_at(fd, bytes, size, before.length), error = errno;
  if (fd >= 0 && done < 0) (void)!ftruncate(fd, (off_t)before.length); /* else the next one does it */
  if (fd >= 0) close(fd);
  errno = error;
  return done;
}

int known_end(struct known_out *out, int layer) {
  int done = fclose(out->stream) != 0 ? -1 : append(layer, out->bytes, out->size), error = errno;
  free(out->bytes);
  errno = error;
  return done;
}
