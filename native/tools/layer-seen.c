#include "tools/layer-seen.h"

#include "lib/report-failure.h"
#include "lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN "seen"
#define SEEN_MAX (1u << 30)

struct seen {
  size_t zone;
  const char *path;
};

struct seen_list {
  struct seen *item;
  size_t count;
  char *bytes; /* the paths are in there */
};

static int by_place(const void *a, const void *b) {
  const struct seen *first = a, *second = b;
  if (first->zone != second->zone) return first->zone < second->zone ? -1 : 1;
  return strcmp(first->path, second->path);
}

static int has(const struct seen_list *seen, const struct listed *item) {
  struct seen wanted = {item->zone, item->path};
  return seen->count > 0 && bsearch(&wanted, seen->item, seen->count, sizeof wanted, by_place) != NULL;
}

static const char *next_word(const char **at, const char *end) {
  const char *word = *at, *nul = word < end ? memchr(word, 0, (size_t)(end - word)) : NULL;
  if (!nul) return errno = EBADMSG, NULL;
  *at = nul + 1;
  return word;
}

static int parse(struct seen_list *seen, const char *end) {
  for (const char *at = seen->bytes; at < end;) {
    uint64_t zone;
    const char *number = next_word(&at, end), *path = number ? next_word(&at, end) : NULL;
    if (!path) return -1;
    if (parse_number(number, SIZE_MAX, &zone) < 0) return errno = EBADMSG, -1;
    struct seen *more = grow(seen->item, seen->count, sizeof *more);
    if (!more) return -1;
    seen->item = more;
    seen->item[seen->count++] = (struct seen){(size_t)zone, path};
  }
  return 0;
}

/* A run that was killed has left none. */
static int read_seen(int layer, struct seen_list *seen) {
  size_t size;
  *seen = (struct seen_list){0};
  int fd = open_beneath(layer, SEEN, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  seen->bytes = read_all(fd, SEEN_MAX, &size);
  close(fd);
  if (!seen->bytes || parse(seen, seen->bytes + size) < 0) return -1;
  if (seen->count) qsort(seen->item, seen->count, sizeof *seen->item, by_place);
  return 0;
}

static void free_seen(struct seen_list *seen) {
  int error = errno;
  free(seen->item);
  free(seen->bytes);
  errno = error;
}

int seen_compare(int layer, struct list *list) {
  struct seen_list seen;
  int done = read_seen(layer, &seen);
  for (size_t i = 0; done == 0 && i < list->count; i++)
    if (list->item[i].kind == ADDED && has(&seen, &list->item[i])) list->item[i].conflict = 1;
  free_seen(&seen);
  return done;
}

/* Kinds of what the zone has something for. */
static int is_there(const struct listed *item) { return item->kind == MODIFIED || item->kind == MODE || item->kind == SYMLINK || item->kind == TYPE; }

static int write_whole(int fd, const char *bytes, size_t size) {
  for (ssize_t done; size > 0; bytes += done, size -= (size_t)done)
    if ((done = write(fd, bytes, size)) < 0) return -1;
  return 0;
}

/* Writes a new file and renames it, so that the old content stays when the write fails. */
static int replace(int layer, const char *bytes, size_t size) {
  static const char NEW[] = SEEN ".new";
  int fd = openat(layer, NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  int done = fd < 0 ? -1 : write_whole(fd, bytes, size), error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  if (done == 0) done = renameat(layer, NEW, layer, SEEN);
  if (done < 0) error = errno, unlinkat(layer, NEW, 0), errno = error;
  return done;
}

int seen_note(int layer, const struct list *list) {
  struct seen_list seen;
  if (read_seen(layer, &seen) < 0) return free_seen(&seen), -1;
  FILE *out = text_begin();
  for (size_t i = 0; out && i < seen.count; i++) fprintf(out, "%zu%c%s%c", seen.item[i].zone, 0, seen.item[i].path, 0);
  for (size_t i = 0; out && i < list->count; i++)
    if (is_there(&list->item[i]) && !has(&seen, &list->item[i])) fprintf(out, "%zu%c%s%c", list->item[i].zone, 0, list->item[i].path, 0);
  size_t size;
  char *text = out ? text_end(&size) : NULL;
  free_seen(&seen);
  return text ? replace(layer, text, size) : (errno = ENOMEM, -1);
}
