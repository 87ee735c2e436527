/*
 * Looks through a zone for what must be protected and can be anywhere in it: repositories (lib/repository.h), and for root files that
 * run with other rights than their caller's.
 *
 * Theory of operation. Every directory is opened from the zone's descriptor, beneath it and without following a link, so that
 * renames meanwhile cannot lead the walk out. Most entries are only read from the directory (getdents64), and not
 * looked at one by one. In a git directory, the walk enters `modules` and `worktrees` only: no program looks for repositories
 * among its objects. A directory is remembered by its name and its parent, so that a deep tree takes no more memory than a flat one.
 *
 * A directory or file that cannot be looked at ends the walk with an error (lib/look.h). In a directory that folds case (ext4 with +F, FAT, NTFS, a directory of
 * another system) the names that programs look for are not compared but looked up, as those programs do: the file system knows its rules.
 */
#pragma once

#include "lib/arena.h"
#include "lib/hide.h"
#include "lib/tree-index.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A bigger tree is refused before a run: the walk would take too long. After a run the walk is unbounded, or a command could end it. */
#define WALK_ENTRIES_MAX 1000000

enum find_kind {
  FIND_NAMED,   /* an entry `.git`, `.hg` or `.jj` (repository.h): a directory, a file, a link */
  FIND_BARE,    /* a directory that git takes for a repository, whatever its name */
  FIND_KEPT,    /* a repository below `modules` or `worktrees` of a git directory */
  FIND_SET_ID,  /* a regular file with a set-id bit or capabilities */
  FIND_TWIN,    /* a name of a file that has others */
  FIND_LINK,    /* a symbolic link that leads out of where the walk began */
  FIND_HIDDEN,  /* an entry of any type that a pattern hides; a directory is walked, too */
  FIND_TOO_DEEP /* a directory whose path the kernel does not take */
};

struct identity {
  dev_t dev;
  ino_t ino;
};

/* The sizes of trees, which a caller keeps for several walks (lib/tree-size.h). */
struct tree_size;

struct find {
  enum find_kind kind;
  mode_t type; /* S_IFMT of its mode */
  struct identity identity;
  const char *path; /* relative to the zone, "" = its root */
  int owner;        /* FIND_KEPT: index of the find whose `modules` or `worktrees` it is in */
};

struct walk {
  int zone;
  const char *start; /* where it begins, NULL = the zone's root */
  int for_git, for_set_id;       /* repositories of every system; set-id files */
  int for_empty;                 /* entries `.git`, `.hg` and `.jj` that lead nowhere now, too */
  size_t entries_max;            /* more are E2BIG; 0 = no bound */
  int for_linked;                /* FIND_TWIN: every regular file with more than one name */
  int for_links;                 /* FIND_LINK */
  int for_names;                 /* a caller that compares names itself: a directory that folds case ends the walk with EOPNOTSUPP */
  const struct hide *hide;       /* FIND_HIDDEN: these; NULL = none */
  struct tree_size *size;        /* gets every entry and directory; NULL = nothing is added up */
  const struct identity *wanted; /* FIND_TWIN: these files */
  size_t wanted_count;
  const struct tree_index *known; /* of an earlier walk, NULL = none: what has not changed since is not listed again */
  uint8_t *same;                 /* of each directory in `known`, where they are looked at all together, by this walk or by one just before it */
  uint32_t *quiet;               /* of each directory in `known`: 0, or one more than all entries below it, where none is to be visited again */
  int records;                    /* makes an index for the next walk, unless `known` is as good; 2 = in any case */

  struct find *find;
  size_t count;
  size_t entries;       /* looked at */
  size_t parent_length; /* so many bytes of it are the path of the directory above, whose index is one less than `above` */
  int above;
  struct arena arena;   /* of the names, and of the paths of what was found */
  struct pending *pending;
  size_t pending_count, next;
  struct tree_directory *record; /* of each pending */
  struct tree_file *file;        /* of the records, where files are looked at */
  char *names;                   /* of these files */
  size_t files, names_size, names_room;
  uint64_t device, mount;        /* of the zone's root, where they are recorded */
  struct timespec begun;         /* CLOCK_REALTIME */
  size_t listed;                 /* directories that were read, or have files that were looked at anew */
  uint64_t until_ns; /* of walk_some, CLOCK_MONOTONIC; 0 = no end */
  char at[PATH_MAX]; /* the directory that was looked at last: where the walk has given up */
};

/* To list one directory of so many takes less time than to make, seal and write an index. */
#define STALE_SHARE 64

/* 0, or -1 with errno and `at`: E2BIG where there is too much, EACCES where a directory cannot be read. */
int walk_zone(struct walk *walk);
/* The same in pieces, for a caller with other things to do: continues until that time. 1 = there is more. A directory so large that
 * it alone takes too long is not read to its end, unless its size is asked for. */
int walk_some(struct walk *walk, uint64_t until_ns);
/* Hands over the index, which may be `known`, of a walk that `records` and is over; empty where the zone is small, or its file system is not trusted. */
void walk_take_index(struct walk *walk, struct tree_index *index);
void walk_free(struct walk *walk);

/* Reads the result of getxattr(2) for security.capability: 1 = there are some, or it cannot be read. */
static inline int walk_has_capabilities(ssize_t size) { return size >= 0 || (errno != ENODATA && errno != EOPNOTSUPP && errno != ENOENT); }
