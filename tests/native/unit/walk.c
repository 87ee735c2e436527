#include "lib/walk.h"
#include "lib/repository.h"
#include "unit.h"

#include <dirent.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>

/* A file system that folds case is seldom at hand: every look by name of this program can be made to behave as on one. */
static int folds;

static int find_folded(int directory, const char *name, char found[256]) {
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), is_found = 0;
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  for (struct dirent *entry; entries && !is_found && (entry = readdir(entries));)
    if (strcasecmp(entry->d_name, name) == 0) is_found = snprintf(found, 256, "%s", entry->d_name) > 0;
  if (entries) closedir(entries);
  return is_found;
}

int fstatat(int directory, const char *restrict name, struct stat *restrict status, int flags) {
  char found[256];
  if (syscall(SYS_newfstatat, directory, name, status, flags) == 0) return 0;
  int error = errno;
  if (!folds || error != ENOENT || !find_folded(directory, name, found)) return errno = error, -1;
  return (int)syscall(SYS_newfstatat, directory, found, status, flags);
}

static const char *path;

static int make_zone(void) {
  path = unit_directory();
  int zone = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  mkdirat(zone, "app", 0700), mkdirat(zone, "app/.Hg", 0700);
  close(openat(zone, "app/.GIT", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  mkdirat(zone, "bare", 0700), mkdirat(zone, "bare/OBJECTS", 0700), mkdirat(zone, "bare/refs", 0700), mkdirat(zone, "bare/head", 0700);
  return zone;
}

static void remove_zone(int zone) { close(zone), unit_remove(path); }

UNIT("in a directory that folds case, repositories are found by the rules of the file system") {
  int zone = make_zone();
  for (folds = 0; folds < 2; folds++) {
    struct walk walk = {.zone = zone, .for_git = 1, .for_empty = 1};
    EXPECT_NUMBER(walk_zone(&walk), 0);
    size_t named = 0, bare = 0;
    for (size_t i = 0; i < walk.count; i++) named += walk.find[i].kind == FIND_NAMED, bare += walk.find[i].kind == FIND_BARE && strcmp(walk.find[i].path, "bare") == 0;
    EXPECT_NUMBER(named, folds ? 2 : 0); /* without, the control, these are ordinary names */
    EXPECT_NUMBER(bare, folds);
    walk_free(&walk);
  }
  remove_zone(zone);
  folds = 0;
}

UNIT("a directory that folds case ends the walk of a caller that compares names") {
  int zone = make_zone();
  for (folds = 0; folds < 2; folds++) {
    struct walk walk = {.zone = zone, .for_git = 1, .for_names = 1};
    EXPECT_NUMBER(walk_zone(&walk), -folds);
    if (folds) EXPECT_NUMBER(errno, EOPNOTSUPP);
    walk_free(&walk);
  }
  remove_zone(zone);
  folds = 0;
}

/* As other runs of the same user do. The pause is longer than one look, so that not all of its tries can meet a closed directory. */
static pid_t open_and_close(int zone) {
  pid_t child = fork();
  while (child == 0) fchmodat(zone, "app", 0500, 0), fchmodat(zone, "app", 0, 0), usleep(50);
  return child;
}

static int failures_beside_another(void) {
  int zone = make_zone(), failures = 0;
  pid_t other = open_and_close(zone);
  for (int i = 0; i < 2000; i++) {
    struct walk walk = {.zone = zone, .for_git = 1};
    failures += walk_zone(&walk) < 0;
    walk_free(&walk);
  }
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  fchmodat(zone, "app", 0700, 0);
  remove_zone(zone);
  return failures;
}

UNIT("a directory that another run opens and closes can be looked at") {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) < 0) _exit(1); /* root may look everywhere */
    _exit(failures_beside_another() > 0);
  }
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT_NUMBER(status, 0);
}
