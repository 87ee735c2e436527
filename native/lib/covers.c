#include "lib/covers.h"

#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/sealed-memory.h"
#include "lib/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Some hundred times what a home with all protected names takes. */
#define COVERS_SIZE_MAX (64u << 20)

int covers_are_sent(const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(file, V_ZONE, &position, &entry))
    if (strcmp(entry.word[2], "rw") == 0) return 1;
  return launchfile_find(file, V_HIDE, &entry);
}

/* ---- out ---- */

/* The number of covers, the target, and of each cover what it is and its path. */
static void put_zone(FILE *out, const struct guard_zone *zone) {
  fwrite(&zone->covers, sizeof zone->covers, 1, out);
  put_word(out, zone->target);
  for (size_t i = 0; i < zone->covers; i++) {
    struct guard_cover cover = zone->cover[i];
    cover.path = NULL; /* ours means nothing there */
    fwrite(&cover, sizeof cover, 1, out);
    put_word(out, zone->cover[i].path);
  }
}

static int sealed_covers(const struct guard *guard) {
  FILE *out = text_begin();
  if (!out) return -1;
  for (size_t i = 0; i < guard->zones; i++) put_zone(out, &guard->zone[i]);
  return text_sealed("covers");
}

int covers_send(int socket, const struct guard *guard) {
  int fd = sealed_covers(guard);
  return fd < 0 ? -1 : close_with(fd, message_send(socket, "", 1, &fd, 1));
}

/* ---- in ---- */

struct reading {
  const char *at, *end;
};

/* Returns 0 where there is not so much left. */
static int take(struct reading *reading, void *to, size_t size) {
  if ((size_t)(reading->end - reading->at) < size) return 0;
  memcpy(to, reading->at, size);
  reading->at += size;
  return 1;
}

/* NULL where they are not all there. */
static struct guard_cover *take_covers(struct reading *reading, size_t count) {
  if (count > (size_t)(reading->end - reading->at) / sizeof(struct guard_cover)) return NULL;
  struct guard_cover *covers = calloc(count + 1, sizeof *covers);
  if (!covers) return NULL;
  for (size_t i = 0; i < count; i++)
    if (!take(reading, &covers[i], sizeof *covers) || !(covers[i].path = take_word(&reading->at, reading->end))) return free(covers), NULL;
  return covers;
}

static int take_zone(struct reading *reading, struct guard *guard) {
  struct guard_zone zone = {.fd = -1, .open = ""};
  if (!take(reading, &zone.covers, sizeof zone.covers) || !(zone.target = take_word(&reading->at, reading->end))) return -1;
  zone.cover = take_covers(reading, zone.covers);
  return zone.cover && append(guard->zone, guard->zones, &zone) == 0 ? 0 : (free(zone.cover), -1);
}

static int read_covers(struct guard *guard, int fd) {
  size_t size;
  char *bytes = read_all(fd, COVERS_SIZE_MAX, &size);
  if (!bytes) return -1;
  struct reading reading = {bytes, bytes + size};
  guard_clear(guard);
  errno = EINVAL;
  while (reading.at < reading.end)
    if (take_zone(&reading, guard) < 0) return -1;
  return 0;
}

int covers_receive(int socket, struct guard *guard) {
  static int fds[MESSAGE_DESCRIPTORS_MAX];
  int count = 0;
  char byte;
  ssize_t got = message_receive(socket, &byte, 1, 0, fds, &count);
  if (got < 0) return -1;
  errno = EPIPE;
  if (got != 1 || count != 1) return -1; /* launch is gone */
  return close_with(fds[0], read_covers(guard, fds[0]));
}
