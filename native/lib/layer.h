/*
 * The layer of a run with copy-on-write zones: what its command changed, kept apart from the zones until a person decides.
 *
 *   DIRECTORY/ID/            0700, of who runs; locked (flock) by the launcher while the run lives, and by each verb on the layer
 *     record                 a launch file of the entries zone (cow), protect, git, profile, keep, since and boot: what the layer belongs
 *                            to, and its seal (lib/seal.h); written when the command comes, so what is without one holds nothing of a
 *                            command's
 *     zone.N/up, zone.N/work upperdir and workdir of the N-th copy-on-write zone, in the order of the launch file; of one that is copied,
 *                            up is the copy
 *     notes                  what the zones had when a command ended, and times in them that are our own doing (tools/layer-notes.h)
 *     apply.K/               what the K-th apply took out of the zones, with its journal (tools/layer-journal.h)
 *     view/                  while a diff is made (tools/layer-view.h)
 */
#pragma once

#include "lib/launch-file.h"

#include <stdint.h>
#include <time.h>

#define LAYER_RECORD "record"
#define LAYER_UPPER "up"
#define LAYER_WORK "work"

/* Makes DIRECTORY/ID, and locks it. Its descriptor, or -1 with errno. */
int layer_create(const char *directory, const char *id);
/* Opens and locks what is there: EWOULDBLOCK while it is in use. */
int layer_open(const char *directory, const char *id);
/* The coarse clock is the one that file systems stamp changes with: a change from now on has this time or a later one. */
struct timespec layer_now(void);
/* Writes the record of the layer `id`: what the host has changed since that time is a conflict. 0, or -1 with errno. */
int layer_record(int layer, const char *id, const struct launchfile *file, struct timespec since);
/* Reads it. `is_sealed` says whether it is as a run has written it: without a secret of this boot nothing is. 0, or -1 with errno. */
int layer_read_record(int layer, const char *id, struct launchfile *record, int *is_sealed);
/* Gets a layer that a run has left ready for another one of the same zones. 0, or -1 with errno: ESTALE where they are others. */
int layer_resume(int layer, const char *id, const struct launchfile *file);
/* Whether something may have been changed in a zone; what cannot be looked at counts. Layers without a record have no changes. */
int layer_may_have_changes(int layer, const struct launchfile *file);
/* With everything in it. 0, or -1 with errno. */
int layer_remove(const char *directory, const char *id);

/* The directory of the N-th zone. Its name fits into `name`. */
typedef char layer_name[24];
void layer_zone_name(size_t number, layer_name name);

/* Its upper directory. -1 with errno. */
int layer_open_upper(int layer, size_t number);

/* The directory that a zone entry names: a descriptor, or -1 with errno, ESTALE where it was moved or replaced. */
int layer_open_source(const struct entry *zone);

/* Instead of an overlay: where none can be mounted. */
int is_copied(const struct entry *zone);
/* A path of any length in a directory: no link is followed, no file system is left. -1 with errno. */
int open_beneath(int directory, const char *path, uint64_t flags);
/* The directory that a path is in (O_PATH), and its last name. */
int open_parent_beneath(int directory, const char *path, const char **name);

static inline int is_layered(const struct entry *zone) { return zone->verb == V_ZONE && zone->word[2][0] == 'c'; }
