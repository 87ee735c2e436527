/*
 * Looks below a zone whose answer can be relied on: what cannot be looked at is never taken for absent.
 *
 * A command can close a directory to its own user (chmod), and so hide what lies in it from later looks of the same user. Such a
 * directory is opened for the time of the look and closed again. A directory of another user that we may not search is closed to the
 * command, too, which has our user and no more groups: nothing in it can have been made or changed. Everything else that fails is a
 * failure, and the caller refuses the run.
 *
 * A user namespace, in which a user has every right over his own files, would need no chmod. But launch cannot enter one and leave it again, and a
 * descriptor that a process in one had opened would not do: each look by name below it asks for the rights of who looks. The whole guard would
 * be another process, at 0.3 to 1.2 ms for each run; opening and closing a directory takes 13 us, and only where one is closed.
 *
 * Every look starts at the zone's descriptor, stays beneath it, and follows no link.
 */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>

/* Another run of the same user may close a directory again that both have opened. One of another user stays closed. */
#define LOOK_TRIES 16

enum look {
  LOOK_MISSING, /* proved: the kernel says that nothing is there */
  LOOK_FOUND,
  LOOK_LINK,   /* a link is in the way */
  LOOK_CLOSED, /* a directory of another user is in the way, closed to us and to the command */
  LOOK_FAILED  /* errno */
};

/* Looks for `path`. `at` (PATH_MAX bytes) gets what is there: the path itself, or the link. */
enum look look_at(int zone, const char *path, char *at, struct stat *status);

/* Directories that are open for a look. Begins as {0}. */
struct unlocked {
  struct unlocked_directory *directory;
  size_t count;
};
/* Lets us do `wants` (permissions of the owner, e.g. 0700) in every own directory on the way to `path`, which is the last of them,
 * until unlock_end. 1 = something has been opened, so that another try makes sense. */
int unlock_way(struct unlocked *unlocked, int zone, const char *path, mode_t wants);
/* The same for one directory that is open. */
int unlock_open(struct unlocked *unlocked, int directory, mode_t wants);
void unlock_end(struct unlocked *unlocked);

/* Opens the directory `path` ("" = the zone's root) for reading; the way is unlocked as needed until unlock_end. */
enum look look_into(int zone, const char *path, struct unlocked *unlocked, int *fd);
/* ext4, XFS, Btrfs or tmpfs: no other host writes to it, and its lists and times are those of its entries. */
int look_is_plain(const struct statfs *file_system);
/*
 * The names in a zone's root, read once: most protected names are not there, and to look for each costs more than to read them all. Only
 * for file systems whose listing is complete, and for directories that do not fold case; elsewhere nothing is known.
 */
struct root_names {
  int is_known;
  uint64_t bits[64]; /* by a hash: more may be there, no fewer */
};
void root_names_read(struct root_names *names, int zone);
/* Is the first word of `path` proved to be missing? */
int root_names_lack(const struct root_names *names, const char *path);

/* The same name with another case of its first letter: a directory that finds one entry by both folds case. 0 = it has no letter. */
int look_other_case(const char *name, char other[NAME_MAX + 1]);

/* Is a directory that may be read, but not searched, closed to the command, too? */
int look_is_closed(int directory);
