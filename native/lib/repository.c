#include "lib/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  unsigned part;
} PARTS[] = {{"HEAD", REPOSITORY_HEAD}, {"objects", REPOSITORY_OBJECTS}, {"refs", REPOSITORY_REFS}, {"commondir", REPOSITORY_COMMONDIR}};

enum { PART_COUNT = sizeof PARTS / sizeof *PARTS };

unsigned repository_part(const char *name) {
  for (int i = 0; i < PART_COUNT; i++)
    if (strcmp(PARTS[i].name, name) == 0) return PARTS[i].part;
  return 0;
}

int repository_parts_in(int directory) {
  struct stat status;
  int parts = 0;
  for (int i = 0; i < PART_COUNT; i++) {
    if (fstatat(directory, PARTS[i].name, &status, AT_SYMLINK_NOFOLLOW) == 0) parts |= (int)PARTS[i].part;
    else if (errno != ENOENT) return -1;
  }
  return parts;
}

static int has(unsigned parts, unsigned wanted) { return (parts & wanted) == wanted; }

int repository_is(unsigned parts) {
  return has(parts, REPOSITORY_HEAD | REPOSITORY_OBJECTS | REPOSITORY_REFS) || has(parts, REPOSITORY_HEAD | REPOSITORY_COMMONDIR);
}

int repository_is_in(int directory) {
  struct stat status;
  if (fstatat(directory, "HEAD", &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -1; /* each has one */
  int parts = repository_parts_in(directory);
  return parts < 0 ? -1 : repository_is((unsigned)parts);
}

int repository_becomes(unsigned before, unsigned after) {
  return !repository_is(before) && (has(after, REPOSITORY_OBJECTS | REPOSITORY_REFS) || repository_is(after));
}

/* gitrepository-layout(5), githooks(5), gitattributes(5). */
static const char *const CLOSED_IN_GIT[] = {
    "config", "config.worktree", "commondir", "gitdir", "hooks", "info/attributes", "objects/info/alternates",
    "objects/info/http-alternates", NULL,
};
static const char *const KEPT_IN_GIT[] = {"modules", "worktrees", NULL};
/* hgrc(5); `sharedpath` names another repository, whose configuration counts, too (hg help share). */
static const char *const CLOSED_IN_HG[] = {"hgrc", "hgrc-not-shared", "sharedpath", NULL};
/* Jujutsu's configuration (docs/config.md there); git_target names a git directory. */
static const char *const CLOSED_IN_JJ[] = {"repo/config.toml", "workspace-config.toml", "repo/store/git_target", NULL};
/* A file `repo` names another directory. */
static const char *const PINNED_IN_JJ[] = {"repo", NULL};
static const char *const NOTHING[] = {NULL};

const struct repository_system REPOSITORY_SYSTEM[REPOSITORY_SYSTEMS] = {
    {".git", CLOSED_IN_GIT, KEPT_IN_GIT, NOTHING},
    {".hg", CLOSED_IN_HG, NOTHING, NOTHING},
    {".jj", CLOSED_IN_JJ, NOTHING, PINNED_IN_JJ},
};

const struct repository_system *repository_system(const char *name) {
  for (int i = 0; i < REPOSITORY_SYSTEMS; i++)
    if (strcmp(REPOSITORY_SYSTEM[i].name, name) == 0) return &REPOSITORY_SYSTEM[i];
  return NULL;
}

/* Only git reads a file (gitrepository-layout(5), "gitdir: PATH"); links are followed by all of them. */
int repository_uses(const struct repository_system *system, const struct stat *entry) {
  if (S_ISDIR(entry->st_mode) || S_ISLNK(entry->st_mode)) return 1;
  return system == &REPOSITORY_SYSTEM[0] && S_ISREG(entry->st_mode) && entry->st_size > 0;
}
