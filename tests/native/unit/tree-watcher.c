/* A walk that asks a watcher finds what a walk without an index finds, whatever has happened in between. On tmpfs, which is trusted. */
#include "runner/tree-watcher.h"

#include "lib/children.h"
#include "lib/clock.h"
#include "lib/syscalls.h"
#include "lib/tree-index.h"
#include "lib/tree-question.h"
#include "lib/walk.h"
#include "unit.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
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

static void settle(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

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

static void keep_index_of(struct walk walk) {
  settle(60); /* longer than a change counts as young */
  walk.zone = zone, walk.records = 2;
  EXPECT_NUMBER(walk_zone(&walk), 0);
  walk_take_index(&walk, &tree);
  walk_free(&walk);
  tree_keep(&tree, zone, runs);
  tree_free(&tree);
}

static void keep_index(int for_files) { keep_index_of((struct walk){.for_git = 1, .for_empty = 1, .for_set_id = for_files}); }

/* For other patterns: a watcher takes it for another zone. */
static uint64_t keep_another_index(int number) {
  char pattern[16];
  struct hide hide = {base, (const char *[]){pattern}, 1};
  snprintf(pattern, sizeof pattern, "p%d", number);
  keep_index_of((struct walk){.for_git = 1, .for_empty = 1, .hide = &hide});
  return hide_sum(&hide);
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

static void note_child(pid_t child, const void *before) {
  if (child != *(const pid_t *)before) watcher = child;
}

/* Is it answered within that time? */
static int has_answer(struct tree_index *index, uint64_t hides, long ms) {
  for (uint64_t end = now_ns() + (uint64_t)ms * 1000000; now_ns() < end; settle(5)) {
    tree_read(index, zone, hides, runs);
    if (index->generation) return 1;
    tree_free(index);
  }
  return 0;
}

static int is_answered(uint64_t hides, long ms) {
  struct tree_index index = {0};
  int is = has_answer(&index, hides, ms);
  tree_free(&index);
  return is;
}

static void await_answer(struct tree_index *index) { EXPECT(has_answer(index, 0, 20000)); }

static int ends(pid_t child) {
  struct pollfd end = {sys_pidfd_open(child), POLLIN, 0};
  int is = poll(&end, 1, 20000) == 1;
  close(end.fd);
  return is;
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

/* `host` may be a child. */
static void start_watcher_of(pid_t host) {
  tree_read(&tree, zone, 0, runs);
  EXPECT(tree.bytes && !tree.generation && has_missed_one());
  tree_free(&tree);
  int owner = sys_pidfd_open(host);
  tree_watcher_start(own, owner);
  close(owner);
  EXPECT(!has_missed_one() && children_each(note_child, &host) > 0);
  await_watcher();
}

static void start_watcher(void) { start_watcher_of(getpid()); }

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
  settle(1500);
  EXPECT(mkdirat(zone, "d9/new", 0700) == 0); /* however long it was up */
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

UNIT("an index that a run could not use gives way to the one that it has made") {
  watch_zone(0);
  EXPECT(!tree.has_files);
  tree_free(&tree);
  keep_index(1);
  for (int tries = 0; tries < 100 && !tree.has_files; tries++, settle(20)) await_watcher();
  EXPECT(tree.has_files);
  EXPECT_NUMBER(expect_same(1, 1), 0);
  end_zone();
}

UNIT("more zones than a watcher holds do not drive each other out") {
  uint64_t hides[9];
  watch_zone(0);
  for (int i = 0; i < 8; i++) {
    hides[i] = keep_another_index(i);
    EXPECT_NUMBER(is_answered(hides[i], i < 7 ? 20000 : 200), i < 7);
  }
  for (int i = 0; i < 7; i++) EXPECT(is_answered(hides[i], 1));
  end_zone();
}

UNIT("the memory of a watcher of another version is not read") {
  struct tree_index other;
  watch_zone(0);
  int memory = memfd_create("index", MFD_CLOEXEC);
  EXPECT(write(memory, tree.bytes, tree.size) == (ssize_t)tree.size);
  EXPECT_NUMBER(tree_map(&other, memory, tree.size - 1), -1);
  EXPECT_NUMBER(tree_map(&other, memory, tree.size), 0);
  EXPECT_NUMBER(munmap(other.bytes, other.size), 0);
  const char *format = memmem(tree.bytes, tree.size, "tree index", 10);
  EXPECT(format && pwrite(memory, "T", 1, format - tree.bytes) == 1);
  EXPECT_NUMBER(tree_map(&other, memory, tree.size), -1);
  close(memory);
  end_zone();
}

UNIT("a watcher is the only one, and ends with its host") {
  char path[160];
  index_zone(0);
  pid_t host = fork(), first;
  if (host == 0) pause(), _exit(0);
  start_watcher_of(host);
  first = watcher;
  snprintf(path, sizeof path, "%s/trees/" WATCHER_WANTED, own), make_file(path);
  int owner = sys_pidfd_open(getpid());
  tree_watcher_start(own, owner);
  close(owner);
  EXPECT(!has_missed_one());
  children_each(note_child, &first);
  EXPECT(watcher == first || watcher == host || (ends(watcher) && waitpid(watcher, NULL, 0) == watcher));
  watcher = first;
  EXPECT(kill(host, SIGKILL) == 0 && waitpid(host, NULL, 0) == host);
  EXPECT(ends(watcher));
  snprintf(path, sizeof path, "%s/trees/" WATCHER_SOCKET, own);
  EXPECT(access(path, F_OK) < 0);
  end_zone();
}

UNIT("a watcher with too few descriptors for its clients ends") {
  struct rlimit before, few;
  char path[160];
  int client[64];
  index_zone(0);
  EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
  few = (struct rlimit){48, before.rlim_max};
  EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
  start_watcher();
  EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
  snprintf(path, sizeof path, "%s/trees", own);
  int place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 64; i++) client[i] = tree_connect(place);
  EXPECT(ends(watcher));
  EXPECT(mkdirat(zone, "d9/e9/.git", 0700) == 0);
  expect_same(0, 2);
  for (int i = 0; i < 64; i++)
    if (client[i] >= 0) close(client[i]);
  close(place);
  end_zone();
}

/* As root, in another mount namespace. */
static void in_own_mounts(void (*run)(void)) {
  int status = 0;
  if (geteuid() != 0) return;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    EXPECT(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    run();
    fflush(stdout), _exit(unit_has_failed());
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void take_a_share(void) {
  char path[160];
  index_zone(0);
  uint64_t hides = keep_another_index(0);
  snprintf(path, sizeof path, "%s/most", base);
  FILE *most = fopen(path, "w");
  fprintf(most, "%d\n", 6 * WIDTH * WIDTH);
  fclose(most);
  EXPECT(mount(path, "/proc/sys/fs/inotify/max_user_watches", NULL, MS_BIND, NULL) == 0);
  start_watcher();
  EXPECT(!is_answered(hides, 300));
  EXPECT(umount2("/proc/sys/fs/inotify/max_user_watches", MNT_DETACH) == 0);
  end_zone();
}

UNIT("a watcher leaves most of a user's watches to others") { in_own_mounts(take_a_share); }

static void ask_in_vain(void) {
  char path[160];
  snprintf(path, sizeof path, "%s/zone", base);
  close(zone);
  zone = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  EXPECT(!is_answered(0, 300));
}

UNIT("a run in another mount namespace, whose mounts a watcher does not hear of, asks for the times") {
  watch_zone(0);
  in_own_mounts(ask_in_vain);
  end_zone();
}

/* By the walk of root: the mounted file is changed by the name that it has elsewhere. */
static void mount_both(void) {
  char other[160], directory[160], own_name[160], file[160];
  watch_zone(1);
  snprintf(other, sizeof other, "%s/other", base), snprintf(directory, sizeof directory, "%s/zone/d6/e6", base);
  snprintf(own_name, sizeof own_name, "%s/own", base), snprintf(file, sizeof file, "%s/zone/d7/e7/file", base);
  EXPECT(mount(other, directory, NULL, MS_BIND, NULL) == 0);
  expect_same(1, 2);
  make_file(own_name);
  EXPECT(mount(own_name, file, NULL, MS_BIND, NULL) == 0);
  tree_free(&tree);
  keep_index(1);
  await_watcher();
  expect_same(1, 2);
  EXPECT(chmod(own_name, 04700) == 0);
  expect_same(1, 3);
  EXPECT(umount2(directory, MNT_DETACH) == 0 && umount2(file, MNT_DETACH) == 0);
  end_zone();
}

UNIT("a directory and a file that are mounted in a zone are looked at") { in_own_mounts(mount_both); }

UNIT("a watcher rejects a client that sends the root of another zone") {
  char path[160];
  struct tree_question question = {0};
  struct tree_answer answer;
  struct stat status;
  index_zone(0);
  snprintf(path, sizeof path, "%s/other", base);
  int true_zone = zone, other = zone = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  keep_index(0);
  start_watcher();
  tree_free(&tree);
  zone = true_zone;
  EXPECT(fstat(zone, &status) == 0 && tree_is_trusted(zone, &question.device, &question.mount));
  question.inode = status.st_ino;
  snprintf(path, sizeof path, "%s/trees", own);
  int place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), client = tree_connect(place);
  EXPECT(!tree_ask(client, &question, &other, &answer));
  close(client), close(place);
  await_watcher();
  expect_same(0, 1);
  end_zone();
}
