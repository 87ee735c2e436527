#include "lib/guard.h"
#include "unit.h"

#include <sys/resource.h>

/* More than a user may have inotify instances (fs.inotify.max_user_instances is 128). */
enum { ROUNDS = 20, MANY = 300 };

static const char *path;

/* A zone in which one name is missing. */
static struct guard watch_zone(void) {
  static struct guard_name name = {".envrc"};
  struct guard guard = {.zones = 1, .zone = calloc(1, sizeof *guard.zone)};
  *guard.zone = (struct guard_zone){.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), .name = &name, .names = 1};
  guard_watch(&guard, 1);
  return guard;
}

static void forget_zone(struct guard *guard) {
  guard->zone->name = NULL; /* not its own */
  guard_close(guard);
}

/* How often this process has slept. */
static long sleeps(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

static long sleeps_at_end(int by_close) {
  long count = 0;
  for (int round = 0; round < ROUNDS; round++) {
    struct guard guard = watch_zone();
    EXPECT(guard.events >= 0);
    long before = sleeps();
    if (by_close) close(guard.events), guard.events = -1;
    else guard_on_end(&guard);
    count += sleeps() - before;
    EXPECT_NUMBER(guard.events, -1);
    forget_zone(&guard);
  }
  return count;
}

UNIT("the end of a watch is not waited for") {
  path = unit_directory();
  long closed = sleeps_at_end(1), left = sleeps_at_end(0);
  EXPECT(closed >= ROUNDS / 2); /* the control */
  EXPECT(left < ROUNDS / 4);
  unit_remove(path);
}

UNIT("a watch that has ended is not kept") {
  int missing = 0;
  path = unit_directory();
  for (int round = 0; round < MANY; round++) {
    struct guard guard = watch_zone();
    for (int tries = 0; guard.events < 0 && tries < 100; tries++) { /* the kernel may be behind */
      usleep(10000);
      forget_zone(&guard);
      guard = watch_zone();
    }
    missing += guard.events < 0;
    guard_on_end(&guard);
    forget_zone(&guard);
  }
  EXPECT_NUMBER(missing, 0);
  unit_remove(path);
}
