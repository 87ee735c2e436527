#include "lib/clock.h"
#include "lib/guard.h"
#include "unit.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Less than the instances of a user in this test, which ends more watches than that. */
enum { INSTANCES = 16, MANY = 100, PLACES = 8 };

static const char *path;

static struct guard guard_of(struct guard_zone zone) {
  struct guard guard = {.zones = 1, .zone = calloc(1, sizeof *guard.zone), .events = -1};
  *guard.zone = zone;
  guard.zone->open = guard.zone->source = guard.zone->target = "";
  guard.zone->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  root_names_read(&guard.zone->root, guard.zone->fd);
  guard_watch(&guard, 1);
  return guard;
}

/* It begins late, which is long ago. */
static struct guard watch_small_zone(void) { return guard_of((struct guard_zone){.has_git = 1}); }

/* It begins at once. */
static struct guard watch_large_zone(void) { return guard_of((struct guard_zone){.has_git = 1, .listed = 10000}); }

static void make(const char *name) {
  char at[PATH_MAX];
  snprintf(at, sizeof at, "%s/%s", path, name);
  EXPECT(mkdir(at, 0700) == 0);
}

/* How often this process has slept. */
static long sleeps(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

static void write_text(const char *file, const char *text) {
  int fd = open(file, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) _exit(255);
  close(fd);
}

/* In a process without the instances and the places of other runs, where the kernel allows one. Returns what `act` does, at most 200. */
static int alone(int (*act)(void)) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    char most[16];
    snprintf(most, sizeof most, "%d", INSTANCES);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) write_text("/proc/sys/user/max_inotify_instances", most);
    _exit(act());
  }
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int end_by_close(struct guard *guard) { return close(guard->events), guard->events = -1; }
static int end_watch(struct guard *guard) { return guard_on_end(guard), guard->events; }

/* How often the ends of so many watches have waited. */
static int sleeps_at_end(int rounds, int (*end)(struct guard *)) {
  long count = 0;
  for (int round = 0; round < rounds; round++) {
    struct guard guard = watch_large_zone();
    long before = sleeps();
    if (guard.events < 0 || end(&guard) != -1) return 200;
    count += sleeps() - before;
    guard_close(&guard);
  }
  return (int)count;
}

static int sleeps_by_close(void) { return sleeps_at_end(PLACES, end_by_close); }
static int sleeps_by_end(void) { return sleeps_at_end(PLACES, end_watch); }

UNIT("the end of a watch is not waited for, unless others wait") {
  path = unit_directory();
  EXPECT(alone(sleeps_by_close) >= PLACES / 2); /* the control */
  EXPECT(alone(sleeps_by_end) < PLACES / 4);
  unit_remove(path);
}

static int missing_instances(void) {
  int missing = 0;
  for (int round = 0; round < MANY; round++) {
    struct guard guard = watch_large_zone();
    missing += guard.events < 0;
    guard_on_end(&guard);
    guard_close(&guard);
  }
  return missing;
}

UNIT("watches that have ended do not use up the instances of a user") {
  path = unit_directory();
  EXPECT_NUMBER(alone(missing_instances), 0);
  unit_remove(path);
}

UNIT("a small zone has no watch at first, and then sees what was made meanwhile") {
  path = unit_directory();
  struct guard guard = watch_small_zone();
  EXPECT_NUMBER(guard.events, -1);
  guard_on_start(&guard, now_ns() + 1000000000ull);
  EXPECT_NUMBER(guard_on_time(&guard), 0); /* not yet */
  EXPECT_NUMBER(guard.events, -1);
  make("a"), make("a/b"), make("a/b/.git");
  guard_on_start(&guard, 1);
  EXPECT_NUMBER(guard_on_time(&guard), 1);
  EXPECT(guard.events >= 0 && !guard.unwatched);
  EXPECT(strstr(guard.seen, "a/b/.git") != NULL);
  guard_close(&guard);
  unit_remove(path);
}

UNIT("a directory that was made before the watch is watched") {
  path = unit_directory();
  make("old");
  struct guard guard = watch_small_zone();
  make("new");
  EXPECT_NUMBER(guard_on_time(&guard), 0);
  make("old/.git");
  EXPECT_NUMBER(guard_on_events(&guard), 0); /* the control: left to the walks */
  make("new/.git");
  EXPECT_NUMBER(guard_on_events(&guard), 1);
  guard_close(&guard);
  unit_remove(path);
}

static void move(const char *name, const char *other) {
  char from[PATH_MAX], to[PATH_MAX];
  snprintf(from, sizeof from, "%s/%s", path, name);
  snprintf(to, sizeof to, "%s/%s", path, other);
  EXPECT(rename(from, to) == 0);
}

static void make_link(const char *target, const char *name) {
  char at[PATH_MAX];
  snprintf(at, sizeof at, "%s/%s", path, name);
  EXPECT(symlink(target, at) == 0);
}

UNIT("a link that replaces a watched directory is allowed, and one that is called .git is an attempt") {
  path = unit_directory();
  struct guard guard = watch_large_zone();
  make("a");
  EXPECT_NUMBER(guard_on_events(&guard), 0);
  move("a", "a-1"), make_link("a-1", "a"), make("b");
  EXPECT_NUMBER(guard_on_events(&guard), 0);
  make_link("../a-1", "b/.git");
  EXPECT_NUMBER(guard_on_events(&guard), 1);
  EXPECT(strstr(guard.seen, "b/.git") != NULL);
  guard_close(&guard);
  unit_remove(path);
}

static int is_watched_from_the_start(struct guard_zone zone) {
  struct guard guard = guard_of(zone);
  int is_early = guard.events >= 0;
  guard.zone->hide.patterns = guard.zone->repositories = guard.zone->names = 0; /* not its own */
  guard.zone->name = NULL, guard.zone->repository = NULL;
  guard_close(&guard);
  return is_early;
}

UNIT("a zone with hidden files, with a repository or with many directories is watched from the start") {
  static struct guard_name name = {".envrc"};
  static struct guard_repository repository = {.path = ".git"};
  path = unit_directory();
  EXPECT(is_watched_from_the_start((struct guard_zone){.has_git = 1, .hide.patterns = 1}));
  EXPECT(is_watched_from_the_start((struct guard_zone){.has_git = 1, .repository = &repository, .repositories = 1}));
  EXPECT(is_watched_from_the_start((struct guard_zone){.has_git = 1, .listed = 1000}));
  EXPECT(is_watched_from_the_start((struct guard_zone){.has_git = 1, .tree.directories = 1000}));
  EXPECT(!is_watched_from_the_start((struct guard_zone){.has_git = 1, .name = &name, .names = 1}));
  unit_remove(path);
}
