/*
 * The directories of a zone as a walk has listed them, so that the next walk lists only those that have changed.
 *
 * Theory of operation. Creating, removing and renaming an entry sets the change time of its directory, and no call sets a change time. So a
 * directory with the inode and the times of its last listing has the same entries. To ask for the times takes a sixth of listing it. The index
 * holds no answers, only names: the walk still decides about each directory where it is now, and looks at each entry `.git`, `.hg` and `.jj`.
 *
 * For root it holds the files, too. A file gets a set-id bit or capabilities without a change of its directory, so the mode of each file is looked
 * at every time. To set capabilities sets the change time of the file: one with the time of the last look has as many as then, which was none.
 *
 * For other names of a protected file it holds the range of the inode numbers of a directory's files, and one bit of 64 for each: a directory
 * that has not changed, and in which the wanted file is out of the range or lacks its bit, has no name of it.
 *
 * An entry is never trusted
 * - if its directory is on another mount or device than the zone's root, which must be ext4, xfs, btrfs or tmpfs: these set a change time with
 *   each change, by this kernel's own clock;
 * - if the directory had changed just before it was listed: a second change within one tick of the clock could leave the times as they are.
 *
 * Where a watcher is up (runner/tree-watcher.h), it says which directories of a large zone have changed, and nothing is asked for its times.
 *
 * The index of a large zone is kept next to the secret of the seals, where no command can write, and sealed: a listing that lacks a name would
 * hide a directory. A file that is damaged or of another zone is not read; one that is old costs only listings.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct tree_time {
  uint32_t seconds, nanoseconds;
};

/* Of the files of a directory: none lies outside of the range, or lacks its bit. */
struct tree_inodes {
  uint64_t least, most, bits;
};

/* A listing holds while the state of its directory is the same. */
struct tree_state {
  uint64_t inode; /* 0 = list it again */
  struct tree_time changed, modified;
};

/* A regular file that had neither a set-id bit nor capabilities. */
struct tree_file {
  uint32_t name;
  struct tree_time changed; /* 0 seconds = look at it again */
};

struct tree_directory {
  struct tree_state state;
  struct tree_inodes inodes;
  uint32_t name;         /* offset of its name in the directory above */
  uint32_t first, count; /* its directories, next to each other */
  uint32_t first_file, files;
  uint32_t entries;      /* of all kinds */
  uint8_t context;       /* of the walk (lib/walk.c) */
  uint8_t parts;         /* of a repository that it holds (lib/repository.h) */
  uint8_t systems;       /* bit N: it has an entry with the name of system N */
  uint8_t is_named;      /* it is such an entry */
  uint8_t hides;         /* it has an entry that is hidden: it is listed each time */
  uint8_t is_linked;     /* it has a file with other names, by which it can change unseen by who watches the directory */
};

struct tree_index {
  char *bytes; /* NULL = there is none */
  size_t size;
  const struct tree_directory *directory;
  const struct tree_file *file;
  const char *names;
  uint32_t directories, files, names_size;
  uint32_t has_files; /* of each directory */
  uint32_t has_systems; /* the walk has looked for repositories: another one has noted no entry of a system */
  uint64_t hides; /* the sum of what the walk was to hide (lib/hide.h), 0 = nothing: another walk has not noted which directories hide something */
  uint64_t device, mount; /* of the zone's root */
  uint64_t generation;    /* of the watcher's: `bytes` are its memory. 0 = they are ours */
  int watcher;            /* then the connection to it */
};

/* Is the file system of this directory one whose times can be trusted? Gets its device and mount. */
int tree_is_trusted(int zone, uint64_t *device, uint64_t *mount);

/* The state of an open directory, for a listing that begins now; inode 0 where its entries must be listed each time. `begun` is when the walk
 * began (CLOCK_REALTIME). */
struct tree_state tree_state_of(int directory, uint64_t device, uint64_t mount, const struct timespec *begun);
/* The same of a file. */
struct tree_file tree_file_of(const struct timespec *changed, const struct timespec *begun);

static inline uint64_t tree_inode_bit(uint64_t inode) { return 1ull << (inode * 0x9e3779b97f4a7c15ull >> 58); }
static inline void tree_add_inode(struct tree_inodes *inodes, uint64_t inode) {
  if (!inodes->bits || inode < inodes->least) inodes->least = inode;
  if (!inodes->bits || inode > inodes->most) inodes->most = inode;
  inodes->bits |= tree_inode_bit(inode);
}
static inline int tree_may_hold(const struct tree_inodes *inodes, uint64_t inode) {
  return inode >= inodes->least && inode <= inodes->most && (inodes->bits & tree_inode_bit(inode)) != 0;
}

/* Is the directory `path` still in that state? */
int tree_is_same(int at, const char *path, const struct tree_index *index, const struct tree_state *state);
/* Is the entry `name` a file without a set-id bit, and not changed since? */
int tree_is_same_file(int directory, const char *name, const struct tree_file *file);

/* One byte for each directory: 1 = it is as it was, with all its files where these are asked for. To be freed. NULL = too little memory. A watcher's
 * word holds for a directory at the place that it had. */
uint8_t *tree_check(const struct tree_index *index, int zone, int with_files);
/* The same by the times alone. `first` gets each directory, open, before it is looked at, on several threads; what it refuses (-1) has changed. */
typedef int tree_first(void *of, uint32_t at, int directory);
uint8_t *tree_check_times(const struct tree_index *index, int zone, int with_files, tree_first *first, void *of);
/* The same of an index that was just made, by what its walk has seen. */
uint8_t *tree_just_listed(const struct tree_index *index);
/* Adds a name to a path of `*length` bytes. -1 = ENAMETOOLONG. */
int tree_add_step(char path[PATH_MAX], size_t *length, const char *name);

/* Copies what `parts` points to; a name is an offset into its names. Returns 0, or -1 with errno. */
int tree_make(struct tree_index *index, const struct tree_index *parts);
/* Where a directory with that name is among those below `above`, near `from`; -1 = it is not. */
int tree_find(const struct tree_index *index, uint32_t above, uint32_t from, const char *name);
/* The same of an entry of a system, wherever it is among them. */
int tree_find_named(const struct tree_index *index, uint32_t above, const char *name);
void tree_free(struct tree_index *index);

/* The index in a watcher's memory. 0, or -1 where it is none. */
int tree_map(struct tree_index *index, int memory, size_t size);
/* The name of a kept index. */
void tree_name(char *name, size_t room, uint64_t device, uint64_t inode, uint64_t hides);
/* Where indexes are kept, with the secret. `runs` is the directory of the runs. -1 = they are not. */
int tree_open_place(const char *runs, int is_made, unsigned char *secret);
/* Reads what was kept of the zone for that sum; without it the index is empty. */
void tree_read_kept(struct tree_index *index, int zone, uint64_t hides, const char *runs);
/* The same, from a watcher where one has it. */
void tree_read(struct tree_index *index, int zone, uint64_t hides, const char *runs);
/* Is it large enough, and not too large? */
int tree_is_kept(const struct tree_index *index);
/* Keeps it if so. What cannot be kept is listed again. */
void tree_keep(const struct tree_index *index, int zone, const char *runs);
/* Removes the one that is kept. */
void tree_forget(int zone, uint64_t hides, const char *runs);
