#include "lib/walk.h"

#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define BENEATH (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)

enum context {
  IN_TREE,  /* anything may be here */
  IN_GIT,   /* a git directory that has been found by its name */
  IN_KEPT,  /* in `modules` or `worktrees` of a git directory */
  IN_PLAIN, /* among objects and the like: files are looked at, repositories are not looked for */
  NOWHERE,
};

struct pending {
  const char *path;
  enum context context;
  int owner; /* index of a find */
};

/* What git looks for in a directory of any name (is_git_directory of its setup.c). */
enum { HAS_HEAD = 1, HAS_OBJECTS = 2, HAS_REFS = 4, HAS_COMMONDIR = 8 };

static const char *const PARTS[] = {"HEAD", "objects", "refs", "commondir"};

static unsigned part_named(const char *name) {
  for (unsigned i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
    if (strcmp(PARTS[i], name) == 0) return 1u << i;
  return 0;
}

static int is_repository(unsigned parts) {
  return (parts & HAS_HEAD) && ((parts & HAS_COMMONDIR) || (parts & (HAS_OBJECTS | HAS_REFS)) == (HAS_OBJECTS | HAS_REFS));
}

/* ---- directories that their owner has closed ---- */

static int unlock(struct unlocked *unlocked, int fd, mode_t wants) {
  char path[64];
  struct stat status;
  if (unlocked->count == UNLOCKED_MAX || fstat(fd, &status) < 0) return 0;
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & wants) == wants) return 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (chmod(path, (status.st_mode & 07777) | wants) < 0) return 0;
  unlocked->mode[unlocked->count] = status.st_mode & 07777;
  unlocked->fd[unlocked->count++] = fd;
  return 1;
}

int unlock_way(struct unlocked *unlocked, int zone, const char *path, mode_t wants) {
  char prefix[PATH_MAX];
  int done = 0;
  for (size_t length = 0;; length++) {
    if (path[length] && path[length] != '/' && length > 0) continue;
    if (length >= sizeof prefix) return done;
    memcpy(prefix, path, length);
    prefix[length] = 0;
    int fd = sys_openat2(zone, length ? prefix : ".", O_PATH | O_DIRECTORY, BENEATH);
    int unlocks = fd >= 0 && unlock(unlocked, fd, wants);
    if (fd >= 0 && !unlocks) close(fd);
    done |= unlocks;
    if (fd < 0 || !path[length]) return done;
  }
}

void unlock_end(struct unlocked *unlocked) {
  char path[64];
  for (int i = unlocked->count - 1; i >= 0; i--) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", unlocked->fd[i]);
    (void)!chmod(path, unlocked->mode[i]); /* at worst the owner's own directory stays open to the owner */
    close(unlocked->fd[i]);
  }
  unlocked->count = 0;
}

/* ---- what is found ---- */

static int add_find(struct walk *walk, const struct find *find) {
  struct find *more = grow(walk->find, walk->count, sizeof *more);
  if (!more) return -1;
  walk->find = more;
  walk->find[walk->count++] = *find;
  return 0;
}

static int add_pending(struct walk *walk, const char *path, enum context context, int owner) {
  struct pending *more = path ? grow(walk->pending, walk->pending_count, sizeof *more) : NULL;
  if (!more) return -1;
  walk->pending = more;
  walk->pending[walk->pending_count++] = (struct pending){path, context, owner};
  return 0;
}

static struct find find_of(enum find_kind kind, const char *path, const struct stat *status) {
  return (struct find){kind, status->st_mode & S_IFMT, {status->st_dev, status->st_ino}, path, -1};
}

static int checks_files(const struct walk *walk) { return walk->for_set_id || walk->for_linked || walk->wanted_count > 0; }

static const struct identity *wanted_inode(const struct walk *walk, ino_t ino) {
  for (size_t i = 0; i < walk->wanted_count; i++)
    if (walk->wanted[i].ino == ino) return &walk->wanted[i];
  return NULL;
}

/* The working directory is the file's own: the shortest way for a call that takes no descriptor. */
static int has_capabilities(const char *name) { return walk_has_capabilities(lgetxattr(name, "security.capability", NULL, 0)); }

static int on_file(struct walk *walk, int directory, const char *path, const char *name, ino_t ino) {
  const struct identity *wanted = wanted_inode(walk, ino);
  struct stat status;
  if (!wanted && !walk->for_set_id && !walk->for_linked) return 0;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -1;
  if (!S_ISREG(status.st_mode)) return 0;
  int is_twin = (wanted && wanted->dev == status.st_dev) || (walk->for_linked && status.st_nlink > 1);
  int is_set_id = walk->for_set_id && ((status.st_mode & (S_ISUID | S_ISGID)) || has_capabilities(name));
  if (!is_twin && !is_set_id) return 0;
  struct find find = find_of(is_twin ? FIND_TWIN : FIND_SET_ID, arena_join(&walk->arena, path, name), &status);
  return find.path ? add_find(walk, &find) : -1;
}

/* ---- a directory ---- */

struct listing {
  struct walk *walk;
  struct pending at;
  int fd;
  unsigned parts;
};

/* Whose place the directory `name` of a git directory is. */
static enum context context_in_git(const struct walk *walk, const char *name) {
  if (strcmp(name, "modules") == 0 || strcmp(name, "worktrees") == 0) return IN_KEPT;
  return checks_files(walk) ? IN_PLAIN : NOWHERE;
}

static int on_git(const struct listing *listing, const char *name) {
  struct walk *walk = listing->walk;
  struct stat status;
  if (fstatat(listing->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -1;
  struct find find = find_of(FIND_GIT, arena_join(&walk->arena, listing->at.path, name), &status);
  if (!find.path || add_find(walk, &find) < 0) return -1;
  return S_ISDIR(status.st_mode) ? add_pending(walk, find.path, IN_GIT, (int)walk->count - 1) : 0;
}

static enum context context_of(const struct listing *listing, const char *name) {
  switch (listing->at.context) {
    case IN_GIT: return context_in_git(listing->walk, name);
    case IN_TREE:
    case IN_KEPT:
    case IN_PLAIN:
    case NOWHERE: break;
  }
  return listing->at.context;
}

static int on_directory(const struct listing *listing, const char *name) {
  enum context context = context_of(listing, name);
  if (context == NOWHERE) return 0;
  return add_pending(listing->walk, arena_join(&listing->walk->arena, listing->at.path, name), context, listing->at.owner);
}

static unsigned char type_of(int directory, const char *name, unsigned char known) {
  struct stat status;
  if (known != DT_UNKNOWN) return known;
  return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(status.st_mode);
}

static int on_entry(struct listing *listing, const struct directory_entry *entry) {
  const char *name = entry->name;
  struct walk *walk = listing->walk;
  if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) return 0;
  if (++walk->entries > WALK_ENTRIES_MAX) return errno = E2BIG, -1;
  if (walk->for_git && listing->at.context == IN_TREE && strcmp(name, ".git") == 0) return on_git(listing, name);
  listing->parts |= part_named(name);
  unsigned char type = type_of(listing->fd, name, entry->type);
  if (type == DT_DIR) return on_directory(listing, name);
  return type == DT_REG ? on_file(walk, listing->fd, listing->at.path, name, entry->ino) : 0;
}

/* Made on purpose, a directory can hold a million names. */
#define LONGEST_DIRECTORY_NS 10000000ull

static int takes_too_long(const struct walk *walk) { return walk->until_ns && now_ns() > walk->until_ns + LONGEST_DIRECTORY_NS; }

static int read_entries(struct listing *listing) {
  static char room[64 << 10] __attribute__((aligned(64)));
  for (;;) {
    long got = sys_getdents(listing->fd, room, sizeof room);
    if (got == 0 || takes_too_long(listing->walk)) return 0;
    if (got < 0) return errno == ENOENT ? 0 : -1; /* removed meanwhile */
    for (long at = 0; at < got;) {
      const struct directory_entry *entry = (const struct directory_entry *)(room + at);
      if (on_entry(listing, entry) < 0) return -1;
      at += entry->size;
    }
  }
}

static const char *last_word(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* It turned out to be a repository after its directories were noted. */
static int on_repository(struct listing *listing, size_t first) {
  struct walk *walk = listing->walk;
  struct stat status;
  if (fstat(listing->fd, &status) < 0) return -1;
  struct find find = find_of(listing->at.context == IN_KEPT ? FIND_KEPT : FIND_BARE, listing->at.path, &status);
  if (find.kind == FIND_KEPT) find.owner = listing->at.owner;
  if (add_find(walk, &find) < 0) return -1;
  for (size_t i = first; i < walk->pending_count; i++) {
    struct pending *below = &walk->pending[i];
    const char *name = last_word(below->path);
    enum context context = below->context == IN_GIT ? IN_GIT : context_in_git(walk, name);
    /* A directory that holds more than a repository's files is looked through, except for its objects. */
    if (context != IN_KEPT && below->context == IN_TREE && strcmp(name, "objects") != 0) continue;
    if (context != IN_GIT) below->owner = (int)walk->count - 1;
    below->context = context;
  }
  return 0;
}

/* A directory that cannot be read can still be searched for one name. */
static int look_by_name(struct walk *walk, const struct pending *at) {
  int fd = sys_openat2(walk->zone, at->path[0] ? at->path : ".", O_PATH | O_DIRECTORY, BENEATH);
  struct listing listing = {walk, *at, fd, 0};
  int done = fd >= 0 && walk->for_git && at->context == IN_TREE ? on_git(&listing, ".git") : 0;
  if (fd >= 0) close(fd);
  return done < 0 && (errno == EACCES || errno == ENOENT) ? 0 : done;
}

static int open_directory(struct walk *walk, struct unlocked *unlocked, const char *path) {
  const char *name = path[0] ? path : ".";
  int fd = sys_openat2(walk->zone, name, O_RDONLY | O_DIRECTORY, BENEATH);
  if (fd >= 0 || errno != EACCES || !unlock_way(unlocked, walk->zone, path, 0500)) return fd;
  return sys_openat2(walk->zone, name, O_RDONLY | O_DIRECTORY, BENEATH);
}

/* 1 = it is no directory (any more), which is none of ours to look at. */
static int on_closed(struct walk *walk, const struct pending *at) {
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV) return 0;
  if (errno == EACCES) return look_by_name(walk, at);
  if (errno != ENAMETOOLONG) return -1;
  struct find find = {FIND_TOO_DEEP, S_IFDIR, {0, 0}, at->path, -1};
  return add_find(walk, &find);
}

static int visit(struct walk *walk, struct unlocked *unlocked, struct pending at) {
  size_t first = walk->pending_count;
  struct listing listing = {walk, at, open_directory(walk, unlocked, at.path), 0};
  if (listing.fd < 0) return on_closed(walk, &at);
  int done = walk->for_set_id && fchdir(listing.fd) < 0 ? -1 : read_entries(&listing);
  int is_found = at.context == IN_TREE ? is_repository(listing.parts) : at.context == IN_KEPT && (listing.parts & HAS_HEAD);
  if (done == 0 && walk->for_git && is_found) done = on_repository(&listing, first);
  close(listing.fd);
  return done;
}

/* Nothing else in it matters: that saves reading it. */
static int visit_git(struct walk *walk, const struct pending *at) {
  static const char *const KEPT[] = {"modules", "worktrees"};
  for (int i = 0; i < 2; i++)
    if (add_pending(walk, arena_join(&walk->arena, at->path, KEPT[i]), IN_KEPT, at->owner) < 0) return -1;
  return 0;
}

static int walk_pending(struct walk *walk, struct unlocked *unlocked) {
  while (walk->next < walk->pending_count) {
    if (walk->until_ns && now_ns() > walk->until_ns) return 1;
    struct pending at = walk->pending[walk->next++];
    walk->failed = at.path;
    if (at.context == NOWHERE) continue;
    int done = at.context == IN_GIT && !checks_files(walk) ? visit_git(walk, &at) : visit(walk, unlocked, at);
    if (done < 0) return -1;
  }
  return 0;
}

static int begin(struct walk *walk) {
  if (walk->pending_count > 0) return 0;
  return walk->start ? add_pending(walk, walk->start, IN_PLAIN, -1) : add_pending(walk, "", IN_TREE, -1);
}

int walk_some(struct walk *walk, uint64_t until_ns) {
  struct unlocked unlocked = {.count = 0};
  int before = walk->for_set_id ? open(".", O_PATH | O_CLOEXEC) : -1;
  walk->until_ns = until_ns;
  int done = begin(walk);
  if (done == 0) done = walk_pending(walk, &unlocked);
  int error = errno;
  unlock_end(&unlocked);
  if (before >= 0 && fchdir(before) < 0) done = -1, error = errno;
  if (before >= 0) close(before);
  errno = error;
  return done;
}

int walk_zone(struct walk *walk) { return walk_some(walk, 0); }

void walk_free(struct walk *walk) {
  free(walk->find);
  free(walk->pending);
  arena_free(&walk->arena);
  *walk = (struct walk){.zone = -1};
}

int walk_is_bare(int zone, const char *path) {
  unsigned parts = 0;
  struct stat status;
  int fd = sys_openat2(zone, path[0] ? path : ".", O_PATH | O_DIRECTORY, BENEATH);
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  for (unsigned i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
    if (fstatat(fd, PARTS[i], &status, AT_SYMLINK_NOFOLLOW) == 0) parts |= 1u << i;
  close(fd);
  return is_repository(parts);
}
