/*
 * One definition of a repository: a directory from which a version control system on the host takes programs to run. The guard, its
 * sweep, and the apply of copy-on-write changes all ask here, so that no two of them can disagree about a step in between.
 *
 * git looks for an entry `.git`, and takes a directory of any name for a repository by its parts (is_git_directory in git's setup.c).
 * Mercurial and Jujutsu look for directories `.hg` and `.jj` only.
 */
#pragma once

#include <sys/stat.h>

/* Entries of a directory by which git knows a repository. The configuration is none of them: git does without. */
enum repository_part { REPOSITORY_HEAD = 1, REPOSITORY_OBJECTS = 2, REPOSITORY_REFS = 4, REPOSITORY_COMMONDIR = 8 };

/* The part that an entry called `name` is, 0 = none. */
unsigned repository_part(const char *name);
/* The parts that an open directory has (O_PATH will do), or -1 with errno where one of them cannot be looked up. */
int repository_parts_in(int directory);

/* Is that directory one? 1, 0, or -1 with errno. */
int repository_is_in(int directory);

/* Does git take a directory with these parts for a repository? `objects` and `refs` may be in the directory that `commondir` names. */
int repository_is(unsigned parts);
/*
 * Does a change of a directory's parts make a repository? Stricter than repository_is, for those who may leave a change out without
 * stopping a program: all that remains to be added afterwards must not be a single file.
 */
int repository_becomes(unsigned before, unsigned after);

/* A system, by the name of its directory. */
struct repository_system {
  const char *name;          /* `.git` */
  const char *const *closed; /* below that directory: files and directories that the system runs, obeys or is led by; ends with NULL */
  const char *const *kept;   /* directories of whole repositories: none is added, and each of them is one; ends with NULL */
  const char *const *pinned; /* stay where they are: a directory's entries can be written, a file cannot; ends with NULL */
};

#define REPOSITORY_SYSTEMS 3
extern const struct repository_system REPOSITORY_SYSTEM[REPOSITORY_SYSTEMS]; /* git is the first */

/* The system that looks for an entry called `name`, NULL = none does. */
const struct repository_system *repository_system(const char *name);
/* Does the system use such an entry? An empty file leads nowhere: uv keeps one, called `.git`, in its cache. */
int repository_uses(const struct repository_system *system, const struct stat *entry);
