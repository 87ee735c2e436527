/*
 * The journal of an apply: every step, written and synced before the first one is taken.
 *
 * Theory of operation. What goes into the zone is prepared in LAYER/apply.K under a number; a step puts it in place with one rename,
 * and what was there goes back under the same number. A step is known to have been taken by inode numbers, so taking all of them back,
 * in the reverse order, needs no mark of how far one came. LAYER/apply.K/journal means: it is not finished, and the next verb takes it
 * back. Renamed to `applied` it means: done, `undo` may take it back. Undo renames it to `journal` first, so an undo that is
 * killed is finished by the next verb, too. Renamed to `back` it means: all is as it was. What comes out of the zone then is removed,
 * but for what somebody has written in it since it was applied: that stays in the zone, under a name that is said on stderr.
 *
 * The seal of this user (lib/seal.h) is behind its end: what has another one is not taken back before the caller has said so.
 *
 * A sandbox that lives can write in the zone meanwhile. A step that would finish a repository, of which the caller has not seen
 * that it becomes one, is not taken, and neither is one back.
 *
 * A rename does not leave a mount. What goes into a zone on another one than the layer is prepared in a stage on that mount
 * (tools/layer-stage.h), and what comes out is copied to LAYER/apply.K before the stage is removed.
 */
#pragma once

#include "tools/layer-stage.h"

enum step_kind {
  STEP_NEW = 'n',      /* number -> path */
  STEP_EXCHANGE = 'x', /* number <-> path */
  STEP_REMOVE = 'r',   /* path -> number */
  STEP_MODE = 'm'
};

struct step {
  enum step_kind kind;
  size_t zone, number;
  int is_known; /* the caller has seen that its directory is a repository, or becomes one */
  const char *path;
  ino_t made, was;         /* inodes: what is put in place, what was there */
  mode_t mode, old_mode;   /* STEP_MODE */
  struct timespec parent;  /* mtime of the directory, which is given back */
  struct timespec made_time;
  off_t made_size;         /* mtime and size of what is put in place */
  struct stat before;      /* not in the file: what the step expects to find */
};

struct journal {
  const struct layer *layer;
  int directory; /* LAYER/apply.K */
  struct stage *stage;   /* of each zone: the directory of its numbers, where it was when the journal was written */
  const char *elsewhere; /* a zone whose place has changed, because something was mounted or unmounted; NULL = none */
  unsigned number; /* K */
  int is_written;
  int is_sealed; /* it is as an apply has written it */
  struct timespec written; /* before the first step */
  size_t kept;
  struct timespec done; /* when it was applied; 0 = it is unfinished */
  struct step *step;
  size_t steps;
};

/* Makes LAYER/apply.K, for the first K that is free. 0, or -1 with errno. */
int journal_begin(struct journal *journal, const struct layer *layer);
int journal_add(struct journal *journal, const struct step *step);
/* The directory of a zone's numbers, made where it is missing. -1 with errno: EXDEV where no place for it is safe. */
int journal_stage(struct journal *journal, size_t zone);
/* Writes it, takes every step, and says that it is done. -1 with errno and `failed`: the caller takes it back. */
int journal_carry_out(struct journal *journal, char failed[PATH_MAX]);

/* Whether LAYER/apply.K is there. */
int journal_is_there(const struct layer *layer, unsigned number);
/* Whether it may have what belongs to the zones. */
int journal_is_unfinished(const struct layer *layer, unsigned number);
/* Reads that of LAYER/apply.K: 1 = unfinished, 2 = applied, 0 = there is none, -1 with errno. */
int journal_read(struct journal *journal, const struct layer *layer, unsigned number);
/* Finds the first path that has changed since the apply, in `failed`: 1, 0 without one, -1 with errno. */
int journal_find_changed(const struct journal *journal, char failed[PATH_MAX]);
/*
 * Takes back what was done of it, and removes LAYER/apply.K; `kept` counts what was kept, and said. 0, or -1 with errno and `failed`:
 * nothing is lost, and it can be tried again. ESTALE where the mounts are others.
 */
int journal_take_back(struct journal *journal, char failed[PATH_MAX]);
/* Removes what a kill has left of its stages. 0, or -1 with errno. */
int journal_tidy(struct journal *journal);
void journal_free(struct journal *journal);
