/*
 * The guard of what a host program would run or obey later: protected names and repositories (lib/repository.h) in writable zones.
 *
 * Theory of operation. What exists is covered: the stager mounts each such path over itself, last read-only, and every directory on
 * the way over itself, so that none of them can be renamed. What does not exist cannot be covered, and nothing is made in its
 * place. Launch watches the directories in which it could be made (inotify) and ends the run at the first attempt. The watch is
 * for promptness: a file system may not report everything, and a queue may overflow. The authority is the sweep at the end of
 * each run, when nothing inside is left: every missing name and every cover is looked up again, every zone looked through for git directories that
 * were not there before (lib/walk.h), and what is found is renamed in its directory to NAME.set-aside.RUN.
 *
 * The target of a link in a covered directory is covered, too: `hooks/pre-commit` is often a link. So is a file with several names, at each
 * of them. For root, files that run with other rights than their caller's are covered.
 *
 * Every look starts at the zone's descriptor, which is opened once and compared with the plan, and follows no link (lib/look.h). What
 * cannot be looked at refuses the run before it starts, and is reported like an attempt after it: a command must not gain by hiding.
 *
 * The same walk finds what the policy hides (lib/hide.h), in zones of every mode: the stager puts something empty over it, last of all. What
 * appears later is covered when it is seen, or the run ends.
 */
#pragma once

#include "lib/launch-file.h"
#include "lib/look.h"
#include "lib/repository.h"
#include "lib/walk.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A path that exists when the run begins, to be mounted over itself. */
struct guard_cover {
  const char *path; /* relative to the zone */
  int writable;     /* only kept in its place */
  int is_way;       /* and is nothing but a step to something else */
  size_t kept;      /* so many of the following lie in it, and stay writable where it does not */
  struct identity identity;
  mode_t type;
  enum hidden {
    HIDDEN_NOT,
    HIDDEN_EMPTY, /* something empty is put there */
    HIDDEN_STEP   /* something hidden is found by it: it only stays in its place */
  } hidden;       /* where it is, `identity` is not compared */
};

/* A path that does not. */
struct guard_name {
  const char *path;
};

/* A path that protected things lead to, by a link or by the configuration of a repository. */
struct guard_lead {
  const char *from; /* directory of the host, without links */
  const char *text;
  enum lead_end {
    LEAD_PATH,  /* is closed */
    LEAD_LINK,  /* stays as it is: only the links on the way matter */
    LEAD_WORD,  /* is closed where it is a file, and not watched where it is missing */
    LEAD_INNER, /* of a link in a closed directory or a home: is closed unless it is the root of a zone */
    LEAD_HIDDEN, /* is hidden in zones of every mode, and the way to it stays */
    LEAD_CONFIG, /* is closed, and is a configuration of git that leads further */
    LEAD_HGRC    /* the same of Mercurial or Jujutsu */
  } end;
  const char *base; /* LEAD_CONFIG, LEAD_HGRC: the directory of the host in which its programs are started */
};

/* The facts about a git directory that are kept from the beginning to the end. */
struct guard_repository {
  enum find_kind kind;
  mode_t type;
  struct identity identity;
  const char *path;
};

struct guard_zone {
  const char *source, *target;
  int fd;           /* O_PATH; -1 = nothing in it is protected */
  int has_git;      /* repositories are protected */
  int only_hides;   /* it is not writable, or is copy-on-write: nothing else is done in it */
  int is_writable;  /* or is copy-on-write */
  struct hide hide; /* what the command finds empty */
  struct root_names root; /* read before the names are looked for, and again by the sweep */
  const char *open; /* names in a git directory that stay writable, and systems that are not protected (`.hg`), separated by blanks */
  struct guard_cover *cover;
  size_t covers, searched; /* so many of them have been looked through for links */
  struct guard_name *name;
  size_t names;
  struct guard_repository *repository;
  size_t repositories;
  struct tree_index tree; /* directories as they were at the last look through the zone */
  uint8_t *same;          /* of each of them, by a look just now; NULL = all are to be looked at */
  size_t listed;          /* of them then */
  int was_kept;           /* an earlier run has kept an index */
};

/* Something that was made in spite of its protection. */
struct guard_attempt {
  char path[256];  /* on the host */
  char aside[256]; /* its name now, "" = it could not be moved */
  int is_gone;     /* it had been removed before it could be: a look has proved that nothing is there */
  int is_unseen;   /* it cannot be looked at after the run, and may be there */
};

#define GUARD_ATTEMPTS_MAX 8
#define GUARD_SET_ID_MAX 8
#define GUARD_HIDDEN_MAX 16

/* Puts something empty over `path` of the zone, in the sandbox as it is. -1 with errno. */
typedef int guard_hide(void *of, const struct guard_zone *zone, const char *path, mode_t type);

struct guard_watch;

struct guard {
  struct guard_zone *zone; /* those that are writable, or in which something is hidden; for layers, those that are copy-on-write */
  guard_hide *on_hidden;   /* while the command runs */
  void *of_hidden;
  int for_layers;
  size_t zones;
  const char *home;        /* of the caller, NULL = nothing is protected by its name in a home */
  const char *home_names;  /* those names, separated by blanks */
  const char *runs;        /* directory of the runs, next to which indexes are kept; NULL = none are */
  struct guard_lead *lead; /* followed once all zones are open */
  size_t leads;
  struct arena arena;
  int events; /* inotify; -1 = nothing is watched */
  int is_late;   /* the watch has yet to begin */
  int unwatched; /* something was to be, and the user has no instance left */
  struct guard_watch *watch;
  size_t watches;
  uint64_t next_walk_ns; /* CLOCK_MONOTONIC; 0 = none */
  size_t walked;         /* the zone that `walk` is in */

  unsigned attempts; /* all of them; the first are kept */
  unsigned set_ids;
  unsigned hidden; /* all of them; the first are kept */
  int bare;        /* errno: something to be hidden could not be covered, or looked for; the run must end */
  int config_locked; /* git has tried to change a configuration */

  char seen[256]; /* the first attempt, on the host */
  const struct guard_zone *seen_zone;
  char failed[512]; /* where guard_prepare gave up */
  struct walk walk; /* while the command runs: a piece at a time, of one zone after the other */
  /* From its end on it is large, and only as much is used as the numbers above say. */
  char seen_path[PATH_MAX]; /* of `seen`, in its zone */
  struct guard_attempt attempt[GUARD_ATTEMPTS_MAX];
  char set_id[GUARD_SET_ID_MAX][256]; /* covered files of root, on the host */
  char hidden_path[GUARD_HIDDEN_MAX][256]; /* on the host */
};

/* Without touching what is large: a run has three guards, and would use five pages for each. */
static inline void guard_clear(struct guard *guard) {
  memset(guard, 0, offsetof(struct guard, walk.at) + 1);
  guard->events = -1;
}

/* Opens the zones, and finds what is to be covered and what to be watched. 0, or -1 with errno and `failed`. */
int guard_prepare(struct guard *guard, const struct launchfile *file);
/* The same for the copy-on-write zones of a layer's record, which are what apply writes to: what is covered and watched in other zones is
 * closed to apply. How large the zones are does not matter, and a file that has other names loses them when apply writes it. */
int guard_prepare_layers(struct guard *guard, const struct launchfile *file);
/* The covers of a zone, by its target; NULL = it has none. */
const struct guard_zone *guard_zone_at(const struct guard *guard, const char *target);
/* Has nothing that guard_prepare has seen changed since? 1, or 0: the covers are not what they would be now. */
int guard_is_fresh(const struct guard *guard, const struct launchfile *file);

/* From now on guard_on_events and guard_on_time tell of attempts. Where the kernel has no watch for us, the walks remain. */
void guard_watch(struct guard *guard, uint64_t now_ns);
/* The command starts. In small zones without a repository, without anything to hide, the watch begins some time later. */
void guard_on_start(struct guard *guard, uint64_t now_ns);
/* 1 = there was an attempt. */
int guard_on_events(struct guard *guard);
/* The command has ended, and with it the watch: the sweep looks for itself, but only events tell that git has tried to change a
 * configuration. */
void guard_on_end(struct guard *guard);
/* The next walk is due. 1 = there was an attempt. */
int guard_on_time(struct guard *guard);

/* When nothing inside is left: sets aside what was made. Returns the number of attempts. */
unsigned guard_sweep(struct guard *guard, const char *run);
void guard_close(struct guard *guard);

/* ---- hidden files (lib/guard-hide.c) ---- */

/* Hides one that the walk has found. A link stays, and so does every step from it to its target, which is hidden wherever it lies in a zone:
 * without its name nothing would tell the next run what the target is. -1 with errno and `failed`. */
int guard_hide_find(struct guard *guard, struct guard_zone *zone, const struct find *find);
/* A cover is on a name, and a file can have others: they are covered, too, wherever they are in a writable zone, or are hidden. */
struct guard_links {
  struct identity *file;
  size_t count;
};
/* Adds the files in a cover that have other names, and what links in one that is not hidden lead to. -1 with errno and `failed`. */
int guard_find_links(struct guard *guard, struct guard_links *links, const struct guard_zone *zone, const struct guard_cover *cover);
/* Other names of hidden files. -1 with errno and `failed`. */
int guard_hide_twins(struct guard *guard);
/* -1, with `bare` set from errno, and what it is about in `failed`. */
int guard_hide_fail(struct guard *guard, const struct guard_zone *zone, const char *path);
/* The same while the command runs, of what is not hidden yet. What cannot be done sets `bare`. */
void guard_hide_late(struct guard *guard, struct guard_zone *zone, const struct walk *walk);
/* An entry that has been made, or the entries of a directory that has. */
void guard_hide_entry(struct guard *guard, struct guard_zone *zone, const char *directory, const char *name);
void guard_hide_below(struct guard *guard, struct guard_zone *zone, const char *directory);

/* ---- between its parts (lib/guard-zone.c is below the others) ---- */

/* -1, with what could not be protected in `failed`. */
int guard_fail(struct guard *guard, const struct guard_zone *zone, const char *path);
/* -1 with errno; `path`, which is kept, may be NULL for want of memory. */
int guard_add_cover(struct guard_zone *zone, const char *path, const struct stat *status, int writable);
int guard_add_name(struct guard_zone *zone, const char *path);
int guard_is_covered(const struct guard_zone *zone, const char *path);
/* Is `name` one of the words, which blanks separate? */
int guard_has_word(const char *words, const char *name);
/* Does `name` of a git directory stay writable, or is `name` a system that is not protected? */
int guard_is_open(const struct guard_zone *zone, const char *name);
const struct repository_system *guard_system_of(const struct find *find);
int guard_same_identity(const struct identity *a, const struct identity *b);

/* Leads of the caller's home: a file that a shell or an editor runs there may be a link into a zone, as those who keep such files in a
 * repository have it. A home that a zone shows is none of them. -1 with errno and `failed`. */
int guard_add_home(struct guard *guard);
/* Is `name` protected in homes? */
int guard_is_in_homes(const struct guard *guard, const char *name);
/* Closes what `lead` leads to, and every link on the way, in all writable zones. 1, 0: it leads nowhere; `at` gets the end. -1 with errno
 * and `failed`. */
int guard_follow(struct guard *guard, const struct guard_lead *lead, char at[PATH_MAX]);
/* Covers, or watches, a path of the host in every writable zone that holds it, unless it is already. -1 with errno and `failed`. */
int guard_cover_path(struct guard *guard, const char *path, const struct stat *status);
int guard_watch_name(struct guard *guard, const char *path);
/* Keeps a directory of the host in its place, in every writable zone that holds it; its entries can be written. -1 as above. */
int guard_keep_path(struct guard *guard, const char *path, const struct stat *status);
/* `path` of the host in a zone: what follows its root; NULL = it is not in there, or the zone is a single file. */
const char *guard_below(const struct guard_zone *zone, const char *path);
/* Opens a file of the host for reading, also in a directory that its user has closed; never a link (ELOOP), and without waiting for a
 * FIFO. -1 with errno: ENOENT also where neither the user's programs nor the command can read it. */
int guard_open_file(struct guard *guard, const char *path);
/* Copies and keeps a lead. -1 with errno and `failed`. */
int guard_add_lead(struct guard *guard, const struct guard_lead *lead);
/* The leads in the configuration at `at`, a path of the host without links. -1 with errno and `failed`. */
int guard_read_config(struct guard *guard, const char *at, const char *base);
/* The same for one of Mercurial or Jujutsu. Each word of it may be a file: their own rules, unlike git's, are not known here. */
int guard_read_hgrc(struct guard *guard, const char *at, const char *base);
/* One that the walk has found, at `path` of the host. */
int guard_add_hgrc(struct guard *guard, const char *path, const char *base);
/* The configurations of a repository: the directory, or file, `.git` at `path` of the host, or one without a name. */
int guard_add_configs(struct guard *guard, const char *path, enum find_kind kind, mode_t type);
/* As a person on the host would call it, cut to the room. */
void guard_host_path(const struct guard_zone *zone, const char *path, char *to, size_t room);
/* Whether a find is protected and was not there when the run began. */
int guard_is_new(const struct guard_zone *zone, const struct find *find);
/* Looks for a name that was missing; an entry that no version control uses (an empty file `.git`) is missing still. */
enum look guard_look_at_name(const struct guard_zone *zone, const char *path, char *at);
/*
 * Is something else in the place of a cover by now? A program of the host that replaces what is covered, as `git config` does with its
 * file, takes the cover away in the sandbox. LOOK_MISSING: no.
 */
enum look guard_look_at_cover(const struct guard_zone *zone, const struct guard_cover *cover, char *at);
/* The cover of a hidden entry; NULL = it has none. */
struct guard_cover *guard_hidden_at(struct guard_zone *zone, const char *path);
/* `path` of the host below the root of a zone, of any mode, in which something is hidden; NULL = elsewhere. */
const char *guard_below_any(const struct guard_zone *zone, const char *path);
/* Hides an entry, unless it is hidden. -1 with errno and `failed`. */
int guard_hide_at(struct guard *guard, struct guard_zone *zone, const char *path, const struct stat *status);
/* The end of a hidden link, or a step on the way, in every zone that holds it. `path` is one of the host. -1 as above. */
int guard_hide_path(struct guard *guard, const char *path, const struct stat *status, enum hidden hidden);
/* Is the system of an entry `.git`, `.hg` or `.jj` protected in this zone? */
int guard_has(const struct guard_zone *zone, const char *system);
