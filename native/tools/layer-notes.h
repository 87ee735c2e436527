/*
 * LAYER/notes: what only the past can say of a zone. Each note is a zone, a path and a ctime; notes are only ever added.
 *
 * With a time: a change of the host that was our own, by an apply or an undo. Renaming a file moves its ctime, and that of its directory;
 * without these notes an undo would turn everything that it gives back into a conflict.
 * With the time NOTE_WAS_THERE: the zone had something at a changed path when a command ended. What the host removed later leaves no trace
 * that a time could be read from: such a change is new now, and was none then.
 */
#pragma once

#include "tools/layer-paths.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

struct notes {
  struct note *item; /* sorted */
  size_t count;
  size_t length; /* of the file, as far as it can be read */
};

#define NOTE_WAS_THERE (struct timespec){0, 0}

/* 0, or -1 with errno. A layer without the file has none. */
int notes_read(int layer, struct notes *notes);
int notes_have(const struct notes *notes, struct zone_path path, struct timespec time);

/* Notes are put into a text (lib/text.h), and added all at once. 0, or -1 with errno: then none was. */
void note_put(FILE *out, struct zone_path path, struct timespec time);
int notes_add(int layer);
