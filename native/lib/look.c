#include "lib/look.h"

#include "lib/arena.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define BENEATH (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)

/* ---- directories that their owner has closed ---- */

struct unlocked_directory {
  int fd;
  mode_t mode;
};

/* A descriptor may be O_PATH, which fchmod(2) does not take. */
static int set_mode(int fd, mode_t mode) { return chmod(fd_path(fd).text, mode); }

static int is_own(const struct stat *status) { return S_ISDIR(status->st_mode) && status->st_uid == geteuid(); }

/* Takes `fd` where it returns 1. */
static int unlock(struct unlocked *unlocked, int fd, mode_t wants) {
  struct stat status;
  if (fstat(fd, &status) < 0 || !is_own(&status) || (status.st_mode & wants) == wants) return 0;
  struct unlocked_directory *more = grow(unlocked->directory, unlocked->count, sizeof *more);
  if (!more) return 0;
  unlocked->directory = more;
  if (set_mode(fd, (status.st_mode & 07777) | wants) < 0) return 0;
  unlocked->directory[unlocked->count++] = (struct unlocked_directory){fd, status.st_mode & 07777};
  return 1;
}

static int unlock_or_close(struct unlocked *unlocked, int fd, mode_t wants) {
  int done = fd >= 0 && unlock(unlocked, fd, wants);
  if (fd >= 0 && !done) close(fd);
  return done;
}

int unlock_open(struct unlocked *unlocked, int directory, mode_t wants) {
  return unlock_or_close(unlocked, fcntl(directory, F_DUPFD_CLOEXEC, 0), wants);
}

/* The first `length` bytes of `path`. The root is not opened by its name ".": that is a search in it. */
static int open_prefix(int zone, const char *path, size_t length, int flags) {
  char prefix[PATH_MAX];
  if (length == 0) return fcntl(zone, F_DUPFD_CLOEXEC, 0);
  if (length >= sizeof prefix) return errno = ENAMETOOLONG, -1;
  memcpy(prefix, path, length);
  prefix[length] = 0;
  return sys_openat2(zone, prefix, O_PATH | flags, BENEATH);
}

/* The end of the word that begins behind `length`; 0 is the end of the root's name. */
static size_t next_end(const char *path, size_t length) {
  if (path[length] == '/') length++;
  return length + strcspn(path + length, "/");
}

int unlock_way(struct unlocked *unlocked, int zone, const char *path, mode_t wants) {
  int done = 0;
  for (size_t length = 0;; length = next_end(path, length)) {
    int fd = open_prefix(zone, path, length, O_DIRECTORY);
    if (fd < 0) return done;
    done |= unlock_or_close(unlocked, fd, wants);
    if (!path[length]) return done;
  }
}

void unlock_end(struct unlocked *unlocked) {
  for (size_t i = unlocked->count; i-- > 0;) {
    (void)!set_mode(unlocked->directory[i].fd, unlocked->directory[i].mode); /* at worst it stays open to its owner */
    close(unlocked->directory[i].fd);
  }
  free(unlocked->directory);
  *unlocked = (struct unlocked){0};
}

/* ---- directories that another user has closed ---- */

/* 1 = it is another user's, and may not be searched. Root is refused by servers only (NFS), which may let the command in. */
int look_is_closed(int directory) {
  struct stat status;
  if (geteuid() == 0 || fstat(directory, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid == geteuid()) return 0;
  int search = sys_openat2(directory, ".", O_PATH, BENEATH);
  return close_with(search, search < 0 && errno == EACCES);
}

static int is_closed_way(int zone, const char *path) {
  for (size_t length = 0;; length = next_end(path, length)) {
    int fd = open_prefix(zone, path, length, O_DIRECTORY);
    int is_closed = fd >= 0 && look_is_closed(fd);
    if (fd >= 0) close(fd);
    if (fd < 0 || is_closed) return is_closed;
    if (!path[length]) return 0;
  }
}

/* ---- looks ---- */

/* The first link on the way to `path`, in `at`. */
static enum look find_link(int zone, const char *path, char *at, struct stat *status) {
  for (size_t length = next_end(path, 0);; length = next_end(path, length)) {
    if (length >= PATH_MAX) return errno = ENAMETOOLONG, LOOK_FAILED;
    int fd = open_prefix(zone, path, length, O_NOFOLLOW);
    int done = fd < 0 ? -1 : fstat(fd, status);
    if (fd >= 0) close(fd);
    if (done < 0) return LOOK_FAILED;
    memcpy(at, path, length);
    at[length] = 0;
    if (S_ISLNK(status->st_mode)) return LOOK_LINK;
    if (!path[length]) return LOOK_FOUND;
  }
}

static enum look look_once(int zone, const char *path, char *at, struct stat *status) {
  int fd = path[0] ? sys_openat2(zone, path, O_PATH | O_NOFOLLOW, BENEATH) : open_prefix(zone, path, 0, 0);
  if (fd < 0) return errno == ELOOP ? find_link(zone, path, at, status) : LOOK_FAILED;
  return close_with(fd, fstat(fd, status)) < 0 ? LOOK_FAILED : S_ISLNK(status->st_mode) ? LOOK_LINK : LOOK_FOUND;
}

/* Classifies the error of a look for which everything possible has been unlocked. */
static enum look meaning(int zone, const char *path, int error) {
  if (error == ENOENT || error == ENOTDIR) return LOOK_MISSING;
  if (error == EACCES && is_closed_way(zone, path)) return LOOK_CLOSED;
  errno = error;
  return LOOK_FAILED;
}

enum look look_at(int zone, const char *path, char *at, struct stat *status) {
  struct unlocked unlocked = {0};
  copy_text(at, PATH_MAX, path);
  enum look look = look_once(zone, path, at, status);
  for (int tries = LOOK_TRIES; look == LOOK_FAILED && errno == EACCES && tries > 0; tries--) {
    unlock_way(&unlocked, zone, path, 0100);
    look = look_once(zone, path, at, status);
  }
  if (look == LOOK_FAILED) look = meaning(zone, path, errno);
  int error = errno;
  unlock_end(&unlocked);
  errno = error;
  return look;
}

static int open_to_read(int zone, const char *path) { return sys_openat2(zone, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, BENEATH); }

enum look look_into(int zone, const char *path, struct unlocked *unlocked, int *fd) {
  char at[PATH_MAX];
  struct stat status;
  *fd = open_to_read(zone, path);
  for (int tries = LOOK_TRIES; *fd < 0 && errno == EACCES && tries > 0; tries--) {
    unlock_way(unlocked, zone, path, 0500);
    *fd = open_to_read(zone, path);
  }
  if (*fd >= 0) return LOOK_FOUND;
  enum look look = errno == ELOOP ? find_link(zone, path, at, &status) : LOOK_FAILED;
  if (look == LOOK_FOUND) return errno = ELOOP, LOOK_FAILED; /* exchanged while we look */
  return look == LOOK_LINK ? look : meaning(zone, path, errno);
}

/* ---- the names of a root ---- */

/* XFS_SUPER_MAGIC of the kernel's fs/xfs: linux/magic.h has it only lately. */
#define XFS_MAGIC 0x58465342

/* A bigger root is read by the walk anyway, and not twice. */
#define ROOT_NAMES_MAX 4096

static unsigned hash_of(const char *word, size_t length) {
  unsigned hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)word[i]) * 16777619u;
  return (hash ^ hash >> 12) % (64 * 64);
}

int look_is_plain(const struct statfs *file_system) {
  unsigned long type = (unsigned long)file_system->f_type;
  return type == EXT4_SUPER_MAGIC || type == XFS_MAGIC || type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

static int lists_everything(int directory) {
  struct statfs file_system;
  return fstatfs(directory, &file_system) == 0 && (look_is_plain(&file_system) || (unsigned long)file_system.f_type == OVERLAYFS_SUPER_MAGIC);
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int look_other_case(const char *name, char other[NAME_MAX + 1]) {
  copy_text(other, NAME_MAX + 1, name);
  char *letter = other;
  while (*letter && !is_letter(*letter)) letter++;
  if (!*letter) return 0;
  *letter ^= 'a' ^ 'A';
  return 1;
}

/* 1 = the name is found by another case, too, or is gone, which proves nothing. -1 = it has no letter. */
static int folds_case(int directory, const char *name) {
  char other[NAME_MAX + 1];
  struct stat one, two;
  if (!look_other_case(name, other)) return -1;
  if (fstatat(directory, name, &one, AT_SYMLINK_NOFOLLOW) < 0) return 1;
  return fstatat(directory, other, &two, AT_SYMLINK_NOFOLLOW) == 0 ? two.st_ino == one.st_ino : errno != ENOENT;
}

static int add_names(struct root_names *names, int directory) {
  char room[8 << 10] __attribute__((aligned(64)));
  int count = 0, folds = -1;
  for (long got; (got = sys_getdents(directory, room, sizeof room)) != 0;) {
    if (got < 0) return 0;
    for (long at = 0; at < got; at += ((const struct directory_entry *)(room + at))->size) {
      const char *name = ((const struct directory_entry *)(room + at))->name;
      unsigned bit = hash_of(name, strlen(name));
      names->bits[bit / 64] |= 1ull << bit % 64;
      if (folds < 0) folds = folds_case(directory, name);
      if (folds > 0 || ++count > ROOT_NAMES_MAX) return 0;
    }
  }
  return 1;
}

void root_names_read(struct root_names *names, int zone) {
  struct unlocked unlocked = {0};
  int directory = -1;
  *names = (struct root_names){0};
  if (look_into(zone, "", &unlocked, &directory) == LOOK_FOUND) names->is_known = lists_everything(directory) && add_names(names, directory);
  if (directory >= 0) close(directory);
  unlock_end(&unlocked);
}

int root_names_lack(const struct root_names *names, const char *path) {
  unsigned bit = hash_of(path, strcspn(path, "/"));
  return names->is_known && !(names->bits[bit / 64] >> bit % 64 & 1);
}
