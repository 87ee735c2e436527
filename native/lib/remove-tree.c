/*
 * Theory of operation. Directories that are not empty are moved up to the top of the tree, so that no depth is too deep and no more than
 * two directories are open. A removal that was killed leaves the name, so the next one continues with it.
 */
#include "lib/remove-tree.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct removal {
  int top;
  unsigned moved;
};

/* By a descriptor: somebody may hold the directory open, and exchange its names. */
static int make_accessible(int directory, const char *name) {
  int fd = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return close_with(fd, fd < 0 ? -1 : chmod(fd_path(fd).text, 0700));
}

static int move_up(struct removal *removal, int directory, const char *name) {
  char free_name[24];
  if (make_accessible(directory, name) < 0) return -1; /* moving a directory writes to it */
  for (;;) {
    snprintf(free_name, sizeof free_name, ".gone.%u", removal->moved++);
    if (syscall(SYS_renameat2, directory, name, removal->top, free_name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) return -1; /* of a removal that was killed */
  }
}

/* 0, 1 = it is a directory that is not empty, -1 with errno. */
static int remove_name(int directory, const char *name) {
  if (unlinkat(directory, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return -1;
  if (unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return errno == ENOTEMPTY || errno == EEXIST ? 1 : -1;
}

/* Calls `remove_entry` for each name; the number of names, or -1 with errno. */
static int for_each(struct removal *removal, int directory, int (*remove_entry)(struct removal *, int, const char *)) {
  int count = 0, done = 0;
  DIR *entries = entries_open(directory);
  if (!entries) return -1;
  for (const char *name; done == 0 && (name = entries_next(entries)); count++) done = remove_entry(removal, directory, name);
  return entries_close(entries, done) < 0 ? -1 : count;
}

static int empty_entry(struct removal *removal, int directory, const char *name) {
  int done = remove_name(directory, name);
  return done == 1 ? move_up(removal, directory, name) : done;
}

static int top_entry(struct removal *removal, int directory, const char *name) {
  int done = remove_name(directory, name);
  if (done <= 0) return done;
  if (make_accessible(directory, name) < 0) return -1; /* overlay's own work directory has mode 0 */
  int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  done = close_with(fd, for_each(removal, fd, empty_entry));
  return done < 0 ? -1 : unlinkat(directory, name, AT_REMOVEDIR);
}

int remove_contents(int directory) {
  struct removal removal = {.top = directory};
  int done;
  do done = for_each(&removal, directory, top_entry);
  while (done > 0);
  return done;
}

int remove_tree(int directory, const char *name) {
  int done = remove_name(directory, name);
  if (done <= 0) return done;
  if (make_accessible(directory, name) < 0) return -1;
  int top = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return -1;
  done = close_with(top, remove_contents(top));
  return done < 0 ? -1 : unlinkat(directory, name, AT_REMOVEDIR);
}
