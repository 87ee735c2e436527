#include "lib/repository.h"
#include "unit.h"

/* A subset of these is a number; `config` is none of the parts. */
static const char *const NAMES[] = {"HEAD", "objects", "refs", "commondir", "config"};
enum { SUBSETS = 1 << COUNT(NAMES) };

static unsigned parts_of(unsigned subset) {
  unsigned parts = 0;
  for (unsigned i = 0; i < COUNT(NAMES); i++)
    if (subset & 1u << i) parts |= repository_part(NAMES[i]);
  return parts;
}

static int has(unsigned subset, const char *name) {
  for (unsigned i = 0; i < COUNT(NAMES); i++)
    if (strcmp(NAMES[i], name) == 0) return subset >> i & 1;
  return 0;
}

/* As is_git_directory of git's setup.c has it, word for word. */
static int git_takes(unsigned subset) {
  if (!has(subset, "HEAD")) return 0;
  return has(subset, "commondir") || (has(subset, "objects") && has(subset, "refs"));
}

UNIT("git's rule decides for every subset of the names") {
  for (unsigned subset = 0; subset < SUBSETS; subset++) EXPECT_NUMBER(repository_is(parts_of(subset)), git_takes(subset));
}

/* `lower` and `upper` as in an overlay, where the upper may also have removed what the lower has. */
UNIT("no order of two steps makes a repository unseen") {
  for (unsigned lower = 0; lower < SUBSETS; lower++)
    for (unsigned upper = 0; upper < SUBSETS; upper++)
      for (unsigned removed = 0; removed < SUBSETS; removed++) {
        unsigned after = (lower & ~removed) | upper;
        int becomes = repository_becomes(parts_of(lower), parts_of(after));
        if (git_takes(lower)) EXPECT_NUMBER(becomes, 0);
        else if (git_takes(after)) EXPECT_NUMBER(becomes, 1);
      }
}

UNIT("what lacks nothing but its HEAD becomes a repository, one part of it does not") {
  EXPECT_NUMBER(repository_becomes(0, REPOSITORY_OBJECTS | REPOSITORY_REFS), 1);
  EXPECT_NUMBER(repository_becomes(REPOSITORY_OBJECTS, REPOSITORY_OBJECTS | REPOSITORY_REFS), 1);
  EXPECT_NUMBER(repository_becomes(REPOSITORY_OBJECTS | REPOSITORY_REFS, REPOSITORY_HEAD | REPOSITORY_OBJECTS | REPOSITORY_REFS), 1);
  EXPECT_NUMBER(repository_becomes(0, REPOSITORY_HEAD), 0);
  EXPECT_NUMBER(repository_becomes(0, REPOSITORY_COMMONDIR), 0);
}

static void make(int directory, const char *name) {
  int fd = openat(directory, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  EXPECT(fd >= 0);
  close(fd);
}

UNIT("the parts of a directory are found by its names, and a directory that cannot be searched has no answer") {
  const char *path = unit_directory();
  int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (unsigned subset = 0; subset < SUBSETS; subset++) {
    for (unsigned i = 0; i < COUNT(NAMES); i++)
      if (subset & 1u << i) make(directory, NAMES[i]);
    EXPECT_NUMBER(repository_parts_in(directory), parts_of(subset));
    for (unsigned i = 0; i < COUNT(NAMES); i++) unlinkat(directory, NAMES[i], 0);
  }
  make(directory, "file");
  int file = openat(directory, "file", O_PATH | O_CLOEXEC);
  EXPECT_NUMBER(repository_parts_in(file), -1);
  EXPECT_NUMBER(errno, ENOTDIR);
  close(file), close(directory);
  unit_remove(path);
}

UNIT("an entry counts by its name, its type and whether it leads anywhere") {
  static const struct {
    const char *name;
    mode_t type;
    off_t size;
    int uses;
  } ROWS[] = {
      {".git", S_IFDIR, 0, 1}, {".git", S_IFREG, 9, 1}, {".git", S_IFREG, 0, 0}, {".git", S_IFLNK, 1, 1},
      {".hg", S_IFDIR, 0, 1},  {".hg", S_IFREG, 9, 0},  {".hg", S_IFLNK, 1, 1},  {".jj", S_IFDIR, 0, 1},
      {".jj", S_IFREG, 9, 0},  {".jj", S_IFLNK, 1, 1},  {".git", S_IFIFO, 0, 0},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    const struct repository_system *system = repository_system(ROWS[i].name);
    EXPECT(system);
    EXPECT_TEXT(system->name, ROWS[i].name);
    EXPECT_NUMBER(repository_uses(system, &(struct stat){.st_mode = ROWS[i].type, .st_size = ROWS[i].size}), ROWS[i].uses);
  }
  EXPECT(!repository_system(".gitignore"));
}
