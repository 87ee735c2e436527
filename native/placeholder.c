#include "placeholder.h"

#include "fail.h"
#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

int is_placeholder(const struct stat *status) {
  return S_ISDIR(status->st_mode) && (status->st_mode & 07777) == PLACEHOLDER_MODE;
}

static int same_directory(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Locks the placeholder `name` shared. Between opening and locking its last holder may have removed it: then -1, ENOENT. */
static int join(int parent, const char *name) {
  int fd = sys_openat2(parent, name, O_RDONLY | O_DIRECTORY, NO_LINKS | RESOLVE_BENEATH);
  if (fd < 0) return -1;
  struct stat held, there;
  if (flock(fd, LOCK_SH) == 0 && fstat(fd, &held) == 0 && fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      same_directory(&held, &there))
    return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

/* In one call: who owns the parent could swap a directory that was made first and changed afterwards. Run by root it
 * belongs to root; the owner of the parent can remove it all the same. */
static int make(int parent, const char *name) {
  return mkdirat(parent, name, PLACEHOLDER_MODE) < 0 && errno != EEXIST ? -1 : 0;
}

static int is_held(const struct placeholders *all, int fd) {
  struct stat mine, other;
  if (fstat(fd, &mine) < 0) return 0;
  for (int i = 0; i < all->count; i++)
    if (fstat(all->item[i].fd, &other) == 0 && same_directory(&mine, &other)) return 1;
  return 0;
}

static int remember(struct placeholders *all, int parent, int fd, const char *name, const char *path) {
  if (is_held(all, fd)) return close(fd), 0;
  if (all->count == PLACEHOLDERS_MAX) return errno = E2BIG, -1;
  struct placeholder *item = &all->item[all->count];
  item->parent = dup(parent);
  if (item->parent < 0) return -1;
  item->fd = fd;
  copy_text(item->name, sizeof item->name, name);
  copy_text(item->path, sizeof item->path, path);
  all->count++;
  return 0;
}

#define ATTEMPTS 100 /* other runs come and go; each attempt needs one of them to have left at the wrong moment */

static int make_or_join(struct placeholders *all, int parent, const char *name, const char *path) {
  for (int i = 0; i < ATTEMPTS; i++) {
    if (make(parent, name) < 0) return -1;
    int fd = join(parent, name);
    if (fd >= 0) return remember(all, parent, fd, name, path);
    if (errno != ENOENT) return -1;
  }
  return errno = EBUSY, -1;
}

/* Who may not write there makes no placeholder, and needs none: inside the sandbox it is the same user. */
static int is_not_ours_to_write(int error) { return error == EACCES || error == EPERM || error == EROFS; }

/* Opened once for all its paths: what was planned, or nothing. */
static int open_zone(const struct record *zone) {
  uint64_t device, inode;
  struct stat status;
  if (parse_number(zone->word[3], UINT64_MAX, &device) < 0 || parse_number(zone->word[4], UINT64_MAX, &inode) < 0)
    return errno = EINVAL, -1;
  int fd = sys_openat2(AT_FDCWD, zone->word[0], O_PATH | O_DIRECTORY, NO_LINKS);
  if (fd < 0 || (fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode)) return fd;
  close(fd);
  return errno = ESTALE, -1;
}

static int protect_missing(struct placeholders *all, int zone, const struct record *protect) {
  char names[PATH_MAX], path[PATH_MAX * 2];
  struct stat status;
  copy_text(names, sizeof names, protect->word[2]);
  copy_text(path, sizeof path, protect->word[0]);
  int at = dup(zone), done = 0;
  if (at < 0) return -1;
  char *rest = NULL;
  for (char *name = strtok_r(names, "/", &rest); name && done == 0; name = strtok_r(NULL, "/", &rest)) {
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
    int next = sys_openat2(at, name, O_PATH | O_NOFOLLOW, NO_LINKS | RESOLVE_BENEATH);
    if ((next < 0 && errno == ENOENT) || (next >= 0 && fstat(next, &status) == 0 && is_placeholder(&status))) {
      done = make_or_join(all, at, name, path);
      if (done < 0 && is_not_ours_to_write(errno)) done = 0;
      if (next >= 0) close(next);
      break;
    }
    if (next < 0) break; /* a link or worse: the stager meets it again and refuses */
    close(at);
    at = next;
    if (!S_ISDIR(status.st_mode)) break;
  }
  int error = errno;
  close(at);
  errno = error;
  return done;
}

static int protect_all(const struct launchfile *file, struct placeholders *all, int *fd, const char **path) {
  struct record record, zone = {0};
  size_t position = 0;
  while (launchfile_next(file, &position, &record)) {
    if (record.verb == V_ZONE) {
      if (*fd >= 0) close(*fd);
      *fd = -1;
      zone = record;
    }
    if (record.verb != V_PROTECT) continue;
    *path = record.word[2];
    /* The paths of a zone stand behind it. */
    if (!zone.word[0] || strcmp(zone.word[0], record.word[0]) != 0) return errno = EINVAL, -1;
    if (*fd < 0 && (*fd = open_zone(&zone)) < 0) return -1;
    if (protect_missing(all, *fd, &record) < 0) return -1;
  }
  return 0;
}

int placeholders_make(const struct launchfile *file, struct placeholders *all, const char **path) {
  int zone = -1, done = protect_all(file, all, &zone, path), error = errno;
  if (zone >= 0) close(zone);
  errno = error;
  return done;
}

void placeholders_each_path(const struct launchfile *file, void (*visit)(const char *path, void *data), void *data) {
  char path[PATH_MAX * 2];
  struct record record;
  size_t position = 0;
  while (launchfile_next(file, &position, &record)) {
    if (record.verb != V_PROTECT) continue;
    size_t zone = strlen(record.word[0]);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", record.word[0], record.word[2]) >= sizeof path) continue; /* no path of this kernel's */
    for (char *slash = strchr(path + zone + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
      *slash = 0;
      visit(path, data);
      *slash = '/';
    }
    visit(path, data);
  }
}

static void remove_if_last(int parent, int fd, const char *name) {
  struct stat held, there;
  /* Somebody else's lock or content is a reason to leave it; the last holder comes by here too. */
  if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &held) < 0) return;
  if (fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || !same_directory(&held, &there)) return;
  (void)!unlinkat(parent, name, AT_REMOVEDIR);
}

void placeholders_remove(struct placeholders *all) {
  for (int i = 0; i < all->count; i++) {
    struct placeholder *item = &all->item[i];
    remove_if_last(item->parent, item->fd, item->name);
    close(item->fd);
    close(item->parent);
  }
  all->count = 0;
}

void placeholder_remove_stale(const char *path) {
  char parent[PATH_MAX];
  copy_text(parent, sizeof parent, path);
  char *slash = strrchr(parent, '/');
  if (!slash || slash == parent) return;
  *slash = 0;
  struct stat status;
  int directory = sys_openat2(AT_FDCWD, parent, O_PATH | O_DIRECTORY, NO_LINKS);
  int fd = directory < 0 ? -1 : sys_openat2(directory, slash + 1, O_RDONLY | O_DIRECTORY, NO_LINKS | RESOLVE_BENEATH);
  if (fd >= 0 && fstat(fd, &status) == 0 && is_placeholder(&status)) remove_if_last(directory, fd, slash + 1);
  if (fd >= 0) close(fd);
  if (directory >= 0) close(directory);
}
