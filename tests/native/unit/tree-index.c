/* A walk with the index of an earlier one finds what a walk without it finds, whatever has happened in between. On tmpfs, which is trusted. */
#include "lib/tree-index.h"
#include "lib/walk.h"
#include "unit.h"

#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static char base[64];
static int zone;
static struct tree_index tree;

/* Longer than a change counts as young (40 ms). */
static void settle(void) { nanosleep(&(struct timespec){0, 60000000}, NULL); }

/* 10 directories of 10: more than are worth an index. */
static void make_zone(void) {
  char path[128];
  strcpy(base, "/dev/shm/llm-do-unit-XXXXXX");
  EXPECT(mkdtemp(base) != NULL);
  zone = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 10; i++)
    for (int j = -1; j < 10; j++) {
      snprintf(path, sizeof path, j < 0 ? "d%d" : "d%d/e%d", i, j);
      EXPECT(mkdirat(zone, path, 0700) == 0);
    }
  EXPECT(mkdirat(zone, "d3/.git", 0700) == 0 && mkdirat(zone, "d3/.hg", 0700) == 0 && mkdirat(zone, "d3/.hg/store", 0700) == 0);
  settle();
}

static void remove_zone(void) {
  close(zone);
  tree_free(&tree);
  unit_remove(base);
}

static int for_files; /* as root looks */
static int for_git = 1;
static const struct hide *hidden;

static void walk_for(int records, const struct tree_index *known, struct walk *walk) {
  *walk = (struct walk){.zone = zone, .for_git = for_git, .for_empty = 1, .for_set_id = for_files, .hide = hidden, .known = known, .records = records};
  EXPECT_NUMBER(walk_zone(walk), 0);
}

static void walk_with(const struct tree_index *known, struct walk *walk) { walk_for(1, known, walk); }

/* With an index of what is there now. Returns how many directories were listed. */
static size_t index_zone(void) {
  struct walk walk;
  walk_for(2, &tree, &walk);
  size_t listed = walk.listed;
  walk_take_index(&walk, &tree);
  walk_free(&walk);
  return listed;
}

static int finds(const struct walk *walk, const struct find *find) {
  for (size_t i = 0; i < walk->count; i++)
    if (walk->find[i].kind == find->kind && strcmp(walk->find[i].path, find->path) == 0) return walk->find[i].type == find->type && walk->find[i].identity.ino == find->identity.ino;
  return 0;
}

/* A walk with the index and one without. Returns how many directories the first has listed. */
static size_t expect_equal(struct walk *with, struct walk *without) {
  EXPECT_NUMBER(with->count, without->count);
  EXPECT_NUMBER(with->entries, without->entries);
  for (size_t i = 0; i < without->count; i++) EXPECT(finds(with, &without->find[i]));
  size_t listed = with->listed;
  walk_free(with), walk_free(without);
  return listed;
}

/* The index is of before. Returns how many directories were listed. */
static size_t expect_same(void) {
  struct walk with, without;
  walk_with(&tree, &with);
  walk_with(NULL, &without);
  return expect_equal(&with, &without);
}

UNIT("what has not changed is not listed again, and what has is") {
  make_zone();
  EXPECT(index_zone() > 100);
  EXPECT_NUMBER(expect_same(), 0);
  EXPECT(mkdirat(zone, "d5/e5/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(), 1);
  EXPECT(mkdirat(zone, "d6/e6/new", 0700) == 0 && mkdirat(zone, "d6/e6/new/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(), 3);
  EXPECT(unlinkat(zone, "d3/.git", AT_REMOVEDIR) == 0);
  EXPECT_NUMBER(expect_same(), 4);
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 0);
  remove_zone();
}

UNIT("a repository without a name, one below modules, and one of another system are found in what was not listed") {
  make_zone();
  EXPECT(mkdirat(zone, "d1/e1/objects", 0700) == 0 && mkdirat(zone, "d1/e1/refs", 0700) == 0);
  EXPECT(mkdirat(zone, "d3/.git/modules", 0700) == 0 && mkdirat(zone, "d3/.git/modules/m", 0700) == 0);
  close(openat(zone, "d3/.git/modules/m/HEAD", O_CREAT | O_WRONLY, 0600));
  settle();
  index_zone();
  close(openat(zone, "d1/e1/HEAD", O_CREAT | O_WRONLY, 0600));
  EXPECT(mkdirat(zone, "d3/.hg/store/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(), 2);
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 0);
  remove_zone();
}

UNIT("what is hidden is found again where nothing has changed, and by an index for the same patterns alone") {
  struct hide both = {base, (const char *[]){".env*", "e7/key"}, 2}, one = {base, (const char *[]){".env*"}, 1};
  make_zone();
  for (int i = 0; i < 2; i++) close(openat(zone, i ? "d1/e7/key" : "d2/e2/.env", O_CREAT | O_WRONLY, 0600));
  settle();
  EXPECT(index_zone() > 100);
  hidden = &one;
  EXPECT(expect_same() > 100); /* an index of a walk that hid nothing */
  EXPECT(index_zone() > 100);
  EXPECT_NUMBER(expect_same(), 1); /* where .env is */
  hidden = &both;
  EXPECT(expect_same() > 100);
  EXPECT(index_zone() > 100);
  EXPECT_NUMBER(expect_same(), 2);
  close(openat(zone, "d5/.ENV.local", O_CREAT | O_WRONLY, 0600));
  EXPECT_NUMBER(expect_same(), 3);
  hidden = NULL;
  EXPECT_NUMBER(expect_same(), 1);
  remove_zone();
}

UNIT("a walk that looks for repositories does not believe one that has not") {
  struct hide some = {base, (const char *[]){".env*"}, 1};
  make_zone();
  hidden = &some, for_git = 0;
  EXPECT(index_zone() > 100);
  EXPECT_NUMBER(expect_same(), 0);
  for_git = 1;
  EXPECT(expect_same() > 100); /* with d3/.git and d3/.hg, which the other one has passed by */
  EXPECT(index_zone() > 100);
  EXPECT_NUMBER(expect_same(), 0);
  hidden = NULL;
  remove_zone();
}

/* How much of the index is made anew: 0 = nothing. */
static int records_now(void) {
  struct walk walk;
  walk_with(&tree, &walk);
  int records = walk.records;
  walk_free(&walk);
  return records;
}

UNIT("an index is made anew where much has changed, or much is new below one directory that has") {
  char path[32];
  make_zone();
  index_zone();
  EXPECT_NUMBER(records_now(), 0);
  close(openat(zone, "d1/e1/file", O_CREAT | O_WRONLY, 0600));
  EXPECT_NUMBER(records_now(), 0);
  EXPECT(mkdirat(zone, "d1/e1/new", 0700) == 0);
  EXPECT_NUMBER(records_now(), 2);
  settle();
  index_zone();
  EXPECT_NUMBER(records_now(), 0);
  for (int i = 0; i < 9; i++) snprintf(path, sizeof path, "d7/e%d/new", i), EXPECT(mkdirat(zone, path, 0700) == 0);
  EXPECT_NUMBER(records_now(), 1);
  remove_zone();
}

/* Names of the file `path`, by the index and without. Returns how many directories were listed. */
static size_t expect_twins(const char *path, size_t names) {
  struct stat status;
  EXPECT(fstatat(zone, path, &status, 0) == 0);
  const struct identity wanted = {status.st_dev, status.st_ino};
  struct walk with = {.zone = zone, .wanted = &wanted, .wanted_count = 1, .known = &tree}, without = {.zone = zone, .wanted = &wanted, .wanted_count = 1};
  EXPECT_NUMBER(walk_zone(&with), 0);
  EXPECT_NUMBER(walk_zone(&without), 0);
  EXPECT_NUMBER(without.count, names);
  return expect_equal(&with, &without);
}

UNIT("other names of a file are found in what was not listed, in repositories and below them, too") {
  static const char *const NAMES[] = {"d2/e2/two", "d3/.git/config", "d3/.hg/store/data", "d9/.jj"};
  make_zone();
  close(openat(zone, "one", O_CREAT | O_WRONLY, 0600));
  close(openat(zone, "d4/other", O_CREAT | O_WRONLY, 0600));
  for (size_t i = 0; i < COUNT(NAMES); i++) EXPECT(linkat(zone, "one", zone, NAMES[i], 0) == 0);
  settle();
  for (for_files = 0; for_files < 2; for_files++) {
    tree_free(&tree);
    index_zone();
    size_t listed = expect_twins("one", 1 + COUNT(NAMES));
    EXPECT(listed >= 1 + COUNT(NAMES) && listed < 10);
    EXPECT(expect_twins("d4/other", 1) < 10);
    EXPECT(linkat(zone, "one", zone, "d5/e5/new", 0) == 0); /* since the index was made */
    EXPECT_NUMBER(expect_twins("one", 2 + COUNT(NAMES)), listed + 1);
    EXPECT(unlinkat(zone, "d5/e5/new", 0) == 0);
    settle();
  }
  for_files = 0;
  remove_zone();
}

UNIT("another name that comes to a directory just after that was listed is found by the next walk, which lists no other one") {
  struct stat status;
  make_zone();
  close(openat(zone, "one", O_CREAT | O_WRONLY, 0600));
  EXPECT(fstatat(zone, "one", &status, 0) == 0);
  settle();
  EXPECT(mkdirat(zone, "d4/e4/new", 0700) == 0);
  index_zone();
  EXPECT(linkat(zone, "one", zone, "d4/e4/two", 0) == 0);
  const struct identity wanted = {status.st_dev, status.st_ino};
  struct walk walk = {.zone = zone, .wanted = &wanted, .wanted_count = 1, .known = &tree, .same = tree_just_listed(&tree)};
  EXPECT_NUMBER(walk_zone(&walk), 0);
  EXPECT_NUMBER(walk.count, 2);
  EXPECT(walk.listed < 10);
  walk_free(&walk);
  remove_zone();
}

UNIT("a listing that was made in a repository does not hold outside of one") {
  make_zone();
  EXPECT(mkdirat(zone, "d0/objects", 0700) == 0 && mkdirat(zone, "d0/refs", 0700) == 0 && mkdirat(zone, "d0/modules", 0700) == 0);
  EXPECT(mkdirat(zone, "d0/modules/m", 0700) == 0 && mkdirat(zone, "d0/modules/m/.git", 0700) == 0);
  close(openat(zone, "d0/HEAD", O_CREAT | O_WRONLY, 0600));
  settle();
  index_zone();
  EXPECT(unlinkat(zone, "d0/HEAD", 0) == 0);
  expect_same();
  remove_zone();
}

UNIT("directories that change places, and links in the place of one, do not keep their listings") {
  char elsewhere[128];
  make_zone();
  EXPECT(mkdirat(zone, "d2/e2/.git", 0700) == 0);
  settle();
  index_zone();
  EXPECT(syscall(SYS_renameat2, zone, "d2/e2", zone, "d4/e4", RENAME_EXCHANGE) == 0);
  expect_same();
  EXPECT(syscall(SYS_renameat2, zone, "d2", zone, "d4", RENAME_EXCHANGE) == 0);
  expect_same();
  EXPECT(renameat(zone, "d7", zone, "moved") == 0);
  snprintf(elsewhere, sizeof elsewhere, "%s/moved", base);
  EXPECT(symlinkat(elsewhere, zone, "d7") == 0 && mkdirat(zone, "moved/e1/.git", 0700) == 0);
  expect_same();
  remove_zone();
}

UNIT("a directory that changed just before it was listed is listed again, whatever its times say") {
  struct stat before;
  struct timespec times[2];
  make_zone();
  EXPECT(mkdirat(zone, "d8/e8/first", 0700) == 0 && fstatat(zone, "d8/e8", &before, 0) == 0);
  index_zone();
  EXPECT(expect_same() >= 1);
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 0);
  /* A program may set the time of the change of the contents back; the kernel notes that it did. */
  times[0] = before.st_atim, times[1] = before.st_mtim;
  EXPECT(mkdirat(zone, "d8/e8/.git", 0700) == 0 && utimensat(zone, "d8/e8", times, 0) == 0);
  EXPECT(expect_same() >= 1);
  remove_zone();
}

/* CAP_NET_RAW, as setcap(8) writes it. Only root can. */
static void give_capability(const char *path) {
  static const uint32_t capability[5] = {0x02000001, 1 << 13};
  char whole[192];
  snprintf(whole, sizeof whole, "%s/%s", base, path);
  EXPECT(setxattr(whole, "security.capability", capability, sizeof capability, 0) == 0 || geteuid() != 0);
}

static void make_files(void) {
  char path[128];
  for (int i = 0; i < 30; i++) {
    snprintf(path, sizeof path, "d%d/e%d/file%d", i % 10, i % 10, i);
    close(openat(zone, path, O_CREAT | O_WRONLY, 0600));
  }
  EXPECT(mkdirat(zone, "d3/.git/objects", 0700) == 0 && mkdirat(zone, "d3/.git/objects/00", 0700) == 0);
  close(openat(zone, "d3/.git/objects/00/object", O_CREAT | O_WRONLY, 0600));
  settle();
}

UNIT("a file that gets other rights than its caller's between two looks is found, in what was not listed and in a repository") {
  make_zone();
  make_files();
  index_zone(); /* without the files: of no use for them */
  EXPECT(fchmodat(zone, "d1/e1/file1", 04755, 0) == 0);
  for_files = 1;
  EXPECT(expect_same() > 100);
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 1); /* d1/e1, whose file has the bit */
  EXPECT(fchmodat(zone, "d1/e1/file1", 0755, 0) == 0 && fchmodat(zone, "d3/.git/objects/00/object", 02755, 0) == 0);
  give_capability("d2/e2/file22");
  EXPECT_NUMBER(expect_same(), geteuid() == 0 ? 3 : 2);
  for_files = 0;
  EXPECT_NUMBER(expect_same(), 0); /* its directories serve a look without files, as the one at the end of a run */
  remove_zone();
}

UNIT("a zone that is large enough for several threads is looked through as by one") {
  char path[128];
  make_zone();
  for (int i = 0; i < 1200; i++) {
    snprintf(path, sizeof path, "d0/e0/m%d", i);
    EXPECT(mkdirat(zone, path, 0700) == 0);
  }
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 0);
  EXPECT(mkdirat(zone, "d0/e0/m0/.git", 0700) == 0 && mkdirat(zone, "d0/e0/m1199/.git", 0700) == 0 && mkdirat(zone, "d9/e9/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(), 3);
  remove_zone();
}

UNIT("a file that changed just before it was looked at is looked at again, whatever its times say") {
  make_zone();
  make_files();
  for_files = 1;
  EXPECT(fchmodat(zone, "d4/e4/file4", 0640, 0) == 0);
  index_zone();
  EXPECT_NUMBER(expect_same(), 1);
  settle();
  index_zone();
  EXPECT_NUMBER(expect_same(), 0);
  for_files = 0;
  remove_zone();
}

static void expect_kept(size_t listed_least, size_t listed_most) {
  char runs[128];
  struct walk walk;
  snprintf(runs, sizeof runs, "%s.own/llm-do/runs", base);
  tree_free(&tree);
  tree_read(&tree, zone, 0, runs);
  walk_with(&tree, &walk);
  EXPECT(walk.listed >= listed_least && walk.listed <= listed_most);
  walk_free(&walk);
}

static void make_key(const char *own) {
  char path[128];
  snprintf(path, sizeof path, "%s/key", own);
  int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  EXPECT(fd >= 0 && write(fd, "0123456789abcdef0123456789abcdef", 32) == 32);
  close(fd);
}

UNIT("an index is kept for the next run, and one that is damaged, open to others or of another zone is none") {
  char own[96], runs[128], trees[128], file[256] = "", command[512];
  make_zone();
  index_zone();
  snprintf(own, sizeof own, "%s.own", base);
  EXPECT(mkdir(own, 0700) == 0);
  strcat(own, "/llm-do");
  snprintf(runs, sizeof runs, "%s/runs", own), snprintf(trees, sizeof trees, "%s/trees", own);
  EXPECT(mkdir(own, 0700) == 0);
  tree_keep(&tree, zone, runs);
  EXPECT(access(trees, F_OK) < 0); /* without the secret of the seals a command may be able to write there */
  make_key(own);
  tree_keep(&tree, zone, runs);
  expect_kept(0, 0);
  snprintf(command, sizeof command, "ls -d %s/*", trees);
  FILE *listing = popen(command, "r");
  EXPECT(listing && fscanf(listing, "%255s", file) == 1);
  pclose(listing);
  struct stat whole;
  EXPECT(stat(file, &whole) == 0);
  for (off_t at = 0; at < whole.st_size; at += at < 256 ? 4 : 4093) {
    int fd = open(file, O_RDWR);
    uint32_t word = 0, damaged = UINT32_MAX;
    EXPECT(pread(fd, &word, sizeof word, at) > 0 && pwrite(fd, &damaged, sizeof word, at) > 0);
    tree_read(&tree, zone, 0, runs);
    EXPECT(tree.bytes == NULL);
    tree_free(&tree);
    EXPECT(pwrite(fd, &word, sizeof word, at) > 0 && ftruncate(fd, whole.st_size) == 0);
    close(fd);
  }
  expect_kept(0, 0);
  EXPECT(chmod(trees, 0755) == 0);
  expect_kept(100, 200);
  EXPECT(chmod(trees, 0700) == 0 && truncate(file, whole.st_size - 1) == 0);
  expect_kept(100, 200);
  *strrchr(own, '/') = 0;
  unit_remove(own);
  remove_zone();
}
