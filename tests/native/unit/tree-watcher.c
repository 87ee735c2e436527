/* A walk that asks a watcher finds what a walk without an index finds, whatever has happened in between. On tmpfs, which is trusted. */
#include "runner/tree-watcher.h"

#include "lib/children.h"
#include "lib/clock.h"
#include "lib/syscalls.h"
#include "lib/tree-index.h"
#include "lib/walk.h"
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define SECOND_NS 1000000000ull
/* Its index is larger than what no watcher is asked for (64 KiB). */
#define WIDTH 30

static char base[64], own[96], runs[128];
static int zone;
static pid_t watcher;
static struct tree_index tree;

static void settle(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

static void make_file(const char *path) { close(openat(zone, path, O_CREAT | O_WRONLY, 0600)); }

/* "zone" with d0/e0 to d29/e29, a repository, a file with a second name outside; and "other", which has directories of the same names. */
static void make_zone(void) {
  char path[128];
  strcpy(base, "/dev/shm/llm-do-unit-XXXXXX");
  EXPECT(mkdtemp(base) != NULL);
  for (int at = 0; at < 2; at++) {
    snprintf(path, sizeof path, "%s/%s", base, at ? "zone" : "other");
    EXPECT(mkdir(path, 0700) == 0);
    zone = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < WIDTH; i++)
      for (int j = -1; j < WIDTH; j++) snprintf(path, sizeof path, j < 0 ? "d%d" : "d%d/e%d", i, j), EXPECT(mkdirat(zone, path, 0700) == 0);
  }
  EXPECT(mkdirat(zone, "d3/.git", 0700) == 0 && mkdirat(zone, "d3/.git/modules", 0700) == 0);
  EXPECT(mkdirat(zone, "../other/d5/e5/.git", 0700) == 0 && mkdirat(zone, "../other/modules", 0700) == 0 && mkdirat(zone, "../other/modules/m", 0700) == 0);
  make_file("../other/modules/m/HEAD"), make_file("d7/e7/file"), make_file("d8/e8/linked");
  EXPECT(linkat(zone, "d8/e8/linked", zone, "../other/name", 0) == 0);
}

static void walk_for(const struct tree_index *known, int for_files, struct walk *walk, int records) {
  *walk = (struct walk){.zone = zone, .for_git = 1, .for_empty = 1, .for_set_id = for_files, .known = known, .records = records};
  EXPECT_NUMBER(walk_zone(walk), 0);
}

static void keep_index(int for_files) {
  struct walk walk;
  settle(60); /* longer than a change counts as young */
  walk_for(NULL, for_files, &walk, 2);
  walk_take_index(&walk, &tree);
  walk_free(&walk);
  tree_keep(&tree, zone, runs);
  tree_free(&tree);
}

static void make_own(void) {
  char path[128];
  snprintf(own, sizeof own, "%s/run", base), EXPECT(mkdir(own, 0700) == 0);
  strcat(own, "/llm-do"), EXPECT(mkdir(own, 0700) == 0);
  snprintf(runs, sizeof runs, "%s/runs", own);
  snprintf(path, sizeof path, "%s/key", own);
  int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
  EXPECT(fd >= 0 && write(fd, "0123456789abcdef0123456789abcdef", 32) == 32);
  close(fd);
}

static int has_missed_one(void) {
  char path[160];
  snprintf(path, sizeof path, "%s/trees/.watcher-wanted", own);
  return access(path, F_OK) == 0;
}

static void note_child(pid_t child, const void *context) {
  (void)context;
  watcher = child;
}

/* Until it has an answer. */
static void await_answer(struct tree_index *index) {
  for (uint64_t end = now_ns() + 20 * SECOND_NS; now_ns() < end; settle(5)) {
    tree_read(index, zone, 0, runs);
    if (index->generation) return;
    tree_free(index);
  }
  EXPECT(!"a watcher that answers");
}

static void await_watcher(void) {
  tree_free(&tree);
  await_answer(&tree);
}

/* Its index is there, and no watcher. */
static void index_zone(int for_files) {
  make_zone();
  make_own();
  keep_index(for_files);
}

static void start_watcher(void) {
  tree_read(&tree, zone, 0, runs);
  EXPECT(tree.bytes && !tree.generation && has_missed_one());
  tree_free(&tree);
  int self = sys_pidfd_open(getpid());
  tree_watcher_start(own, self);
  close(self);
  EXPECT(!has_missed_one() && children_each(note_child, NULL) == 1);
  await_watcher();
}

static void watch_zone(int for_files) {
  index_zone(for_files);
  start_watcher();
}

static void end_zone(void) {
  char path[160];
  tree_free(&tree);
  kill(watcher, SIGKILL);
  EXPECT_NUMBER(waitpid(watcher, NULL, 0), watcher);
  close(zone);
  snprintf(path, sizeof path, "%s", base);
  unit_remove(path);
}

static int finds(const struct walk *walk, const struct find *find) {
  for (size_t i = 0; i < walk->count; i++)
    if (walk->find[i].kind == find->kind && strcmp(walk->find[i].path, find->path) == 0) return walk->find[i].identity.ino == find->identity.ino;
  return 0;
}

/* Returns how many directories the walk with the watcher has listed. */
static size_t expect_same(int for_files, size_t count) {
  struct walk with, without;
  walk_for(&tree, for_files, &with, 0);
  walk_for(NULL, for_files, &without, 0);
  EXPECT_NUMBER(without.count, count);
  EXPECT_NUMBER(with.count, without.count);
  for (size_t i = 0; i < without.count; i++) EXPECT(finds(&with, &without.find[i]));
  size_t listed = with.listed;
  walk_free(&with), walk_free(&without);
  return listed;
}

static int exchange(const char *one, const char *other) { return (int)syscall(SYS_renameat2, zone, one, zone, other, RENAME_EXCHANGE); }

UNIT("a watcher knows what is made, moved, removed and exchanged, and asks for no times") {
  watch_zone(0);
  EXPECT_NUMBER(expect_same(0, 1), 0);
  EXPECT(mkdirat(zone, "d9/e9/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(0, 2), 1);
  EXPECT(mkdirat(zone, "d4/e4/new", 0700) == 0 && mkdirat(zone, "d4/e4/new/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(0, 3), 3);
  EXPECT(unlinkat(zone, "d9/e9/.git", AT_REMOVEDIR) == 0);
  expect_same(0, 2);
  EXPECT(renameat(zone, "../other/d5/e5/.git", zone, "d1/e1/.git") == 0);
  expect_same(0, 3);
  EXPECT(renameat(zone, "d4", zone, "d2/e2/moved") == 0);
  expect_same(0, 3);
  make_file("d6/HEAD"), mkdirat(zone, "d6/objects", 0700), mkdirat(zone, "d6/refs", 0700);
  expect_same(0, 4);
  end_zone();
}

UNIT("what has changed before a watcher began has changed for it, too") {
  index_zone(1);
  EXPECT(mkdirat(zone, "d9/e9/.git", 0700) == 0 && fchmodat(zone, "d7/e7/file", 04700, 0) == 0);
  start_watcher();
  EXPECT_NUMBER(expect_same(1, 3), 3);
  end_zone();
}

/* The directories below the new one have the names of those that the watcher has seen no change of. */
UNIT("a directory that takes the place of a watched one is looked through") {
  watch_zone(0);
  EXPECT(exchange("d5", "../other/d5") == 0);
  expect_same(0, 2);
  EXPECT(exchange("d3/.git/modules", "../other/modules") == 0);
  expect_same(0, 3);
  end_zone();
}

UNIT("a file that gets other rights is found by root's walk, also by a name outside of the zone") {
  watch_zone(1);
  EXPECT_NUMBER(expect_same(1, 1), 0);
  EXPECT(fchmodat(zone, "d7/e7/file", 04700, 0) == 0);
  expect_same(1, 2);
  EXPECT(fchmodat(zone, "../other/name", 04700, 0) == 0);
  expect_same(1, 3);
  end_zone();
}

UNIT("a watcher whose queue ran over, that answers late or has ended is not believed") {
  struct tree_index other;
  char path[64];
  watch_zone(0);
  struct pollfd late = {tree.watcher, POLLIN, 0};
  EXPECT(kill(watcher, SIGSTOP) == 0);
  EXPECT(mkdirat(zone, "d9/e9/.git", 0700) == 0);
  EXPECT_NUMBER(expect_same(0, 2), 1); /* by the times */
  EXPECT(kill(watcher, SIGCONT) == 0 && poll(&late, 1, 20000) == 1);
  EXPECT(mkdirat(zone, "d8/e9/.git", 0700) == 0);
  expect_same(0, 3); /* and not by the answer to the question before */
  await_watcher();
  EXPECT(kill(watcher, SIGSTOP) == 0);
  for (int i = 0; i < 9000; i++) snprintf(path, sizeof path, "d2/e%d/file", i % 2), make_file(path), unlinkat(zone, path, 0);
  EXPECT(mkdirat(zone, "d7/e9/.git", 0700) == 0);
  EXPECT(kill(watcher, SIGCONT) == 0);
  await_answer(&other);
  expect_same(0, 4);
  tree_free(&other);
  await_watcher();
  EXPECT(kill(watcher, SIGKILL) == 0);
  EXPECT(mkdirat(zone, "d6/e9/.git", 0700) == 0);
  expect_same(0, 5);
  end_zone();
}

UNIT("a new index takes the place of the one that is watched") {
  char path[64];
  watch_zone(0);
  uint64_t before = tree.generation;
  for (int i = 0; i < WIDTH; i++) snprintf(path, sizeof path, "d%d/e1/new", i), EXPECT(mkdirat(zone, path, 0700) == 0);
  EXPECT_NUMBER(expect_same(0, 1), 2 * WIDTH);
  tree_free(&tree);
  keep_index(0);
  await_watcher();
  EXPECT(tree.generation != before);
  EXPECT_NUMBER(expect_same(0, 1), 0);
  end_zone();
}
