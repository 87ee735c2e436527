#include "runner/freshness.h"
#include "lib/launch-cache.h"
#include "unit.h"

static const struct looks_ahead NONE_AHEAD = {0};

/* A plan for this caller that builds `tree` and was made from what is at `guard` now. */
static struct launchfile plan_of(const char *caller, const char *tree, const char *guard) {
  static struct launchfile file;
  char identity[256], *bytes = NULL;
  const char *problem = "";
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  fprintf(out, "%s%c", LAUNCH_FILE_MAGIC, 0);
  for (int word = 0; word < KEY_CALLER_WORDS; word++) fprintf(out, "key%c%s%c", 0, caller, 0);
  if (guard && identity_at(guard, identity, sizeof identity) == 0) fprintf(out, "at%c%s%c%s%c", 0, guard, 0, identity, 0);
  if (tree) fprintf(out, "engine%cunshare%chostname%c%s%c", 0, 0, 0, tree, 0);
  fprintf(out, "end%c", 0);
  fclose(out);
  EXPECT_NUMBER(launchfile_check(bytes, size, &file, &problem), 0);
  return file;
}

/* A path that is there, and then another one with the same name. */
static const char *guarded_path(void) {
  static char path[] = "/tmp/llm-do-unit-XXXXXX";
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  EXPECT(fd >= 0);
  close(fd);
  return path;
}

static void change(const char *path) { EXPECT_NUMBER(chmod(path, 0640), 0); }

UNIT("a plan is fresh as long as what it was made from is on disk as it was") {
  const char *path = guarded_path();
  struct launchfile plan = plan_of("me", "box", path);
  EXPECT(is_fresh(&plan));
  change(path);
  EXPECT(!is_fresh(&plan));
  unlink(path);
  EXPECT(!is_fresh(&plan));
}

UNIT("a plan without guards is fresh") {
  struct launchfile plan = plan_of("me", "box", NULL), none = {0};
  EXPECT(is_fresh(&plan));
  EXPECT(is_fresh(&none));
}

UNIT("a sandbox serves the plan that it was built from, and no other tree or caller") {
  struct launchfile own = plan_of("me", "box", NULL), same = plan_of("me", "box", "/usr");
  struct launchfile tree = plan_of("me", "bax", NULL), longer = plan_of("me", "boxes", NULL), caller = plan_of("you", "box", NULL);
  EXPECT(serves(&own, &same, &NONE_AHEAD));
  EXPECT(!serves(&own, &tree, &NONE_AHEAD));
  EXPECT(!serves(&own, &longer, &NONE_AHEAD));
  EXPECT(!serves(&own, &caller, &NONE_AHEAD));
}

UNIT("a sandbox that knows no caller or no tree serves no whole plan, only guards") {
  struct launchfile nothing = {0}, whole = plan_of("me", "box", NULL), guards = plan_of("me", NULL, "/usr");
  EXPECT(!serves(&nothing, &whole, &NONE_AHEAD));
  EXPECT(serves(&nothing, &guards, &NONE_AHEAD));
}

UNIT("both what the sandbox was built from and what the plan was made from must be fresh") {
  const char *path = guarded_path();
  struct launchfile guarded = plan_of("me", "box", path), plain = plan_of("me", "box", NULL);
  EXPECT(serves(&guarded, &plain, &NONE_AHEAD) && serves(&plain, &guarded, &NONE_AHEAD) && serves(&guarded, &guarded, &NONE_AHEAD));
  change(path);
  EXPECT(!serves(&guarded, &plain, &NONE_AHEAD));
  EXPECT(!serves(&plain, &guarded, &NONE_AHEAD));
  EXPECT(!serves(&guarded, &guarded, &NONE_AHEAD));
  struct launchfile now = plan_of("me", "box", path);
  EXPECT(serves(&now, &now, &NONE_AHEAD));
  EXPECT(!serves(&guarded, &now, &NONE_AHEAD)); /* built before the change */
  unlink(path);
}

/* All of them, begun `ago` nanoseconds before now. */
static struct looks looked_at(const struct launchfile *plan, uint64_t ago) {
  struct looks looks = {0};
  while (looks_are_left(&looks, plan)) look_ahead(&looks, plan);
  looks.begun_ns -= ago;
  return looks;
}

UNIT("looks that were made long before the command are made again") {
  const char *path = guarded_path();
  struct launchfile plan = plan_of("me", "box", path);
  struct looks_ahead made = {.own = looked_at(&plan, 0)}, old = {.own = looked_at(&plan, 3600 * 1000000000ull)};
  EXPECT(!looks_are_left(&old.own, &plan) && old.own.position == plan.count && !old.own.has_failed);
  EXPECT(serves(&plan, &plan, &made) && serves(&plan, &plan, &old) && serves(&plan, &plan, &NONE_AHEAD));
  change(path);
  EXPECT(!serves(&plan, &plan, &old));
  EXPECT(!serves(&plan, &plan, &NONE_AHEAD));
  unlink(path);
}

UNIT("a look ahead that finds a change is the last, and nothing is served after it") {
  const char *path = guarded_path();
  struct launchfile plan = plan_of("me", "box", path);
  change(path);
  struct looks_ahead looks = {.own = looked_at(&plan, 0)};
  EXPECT(looks.own.has_failed && !looks_are_left(&looks.own, &plan));
  EXPECT_NUMBER(chmod(path, 0600), 0);
  EXPECT(is_fresh(&plan));
  EXPECT(!serves(&plan, &plan, &looks));
  unlink(path);
}

UNIT("looks ahead at the guards of a client hold as those at the plan of the sandbox do") {
  const char *path = guarded_path();
  struct launchfile own = plan_of("me", "box", NULL), wanted = plan_of("me", NULL, path);
  struct looks_ahead made = {.wanted = looked_at(&wanted, 0)}, old = {.wanted = looked_at(&wanted, 3600 * 1000000000ull)};
  EXPECT(serves(&own, &wanted, &made) && serves(&own, &wanted, &old));
  /* A recent observation is not repeated. On a busy machine a moment may pass between two lines: then once more. */
  int is_trusted = 0;
  for (int tries = 0; tries < 1000 && !is_trusted; tries++) {
    EXPECT_NUMBER(chmod(path, 0600), 0);
    wanted = plan_of("me", NULL, path);
    made = (struct looks_ahead){.wanted = looked_at(&wanted, 0)};
    change(path);
    is_trusted = serves(&own, &wanted, &made);
  }
  EXPECT(is_trusted);
  EXPECT(!serves(&own, &wanted, &old));
  EXPECT(!serves(&own, &wanted, &NONE_AHEAD));
  struct looks_ahead failed = {.wanted = looked_at(&wanted, 0)};
  EXPECT(failed.wanted.has_failed);
  EXPECT_NUMBER(chmod(path, 0600), 0);
  EXPECT(serves(&own, &wanted, &NONE_AHEAD) && !serves(&own, &wanted, &failed));
  unlink(path);
}
