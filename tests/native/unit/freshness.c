#include "runner/freshness.h"
#include "lib/launch-cache.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
  EXPECT(serves(&own, &same));
  EXPECT(!serves(&own, &tree));
  EXPECT(!serves(&own, &longer));
  EXPECT(!serves(&own, &caller));
}

UNIT("a sandbox that knows no caller or no tree serves no whole plan, only guards") {
  struct launchfile nothing = {0}, whole = plan_of("me", "box", NULL), guards = plan_of("me", NULL, "/usr");
  EXPECT(!serves(&nothing, &whole));
  EXPECT(serves(&nothing, &guards));
}

UNIT("both what the sandbox was built from and what the plan was made from must be fresh") {
  const char *path = guarded_path();
  struct launchfile guarded = plan_of("me", "box", path), plain = plan_of("me", "box", NULL);
  EXPECT(serves(&guarded, &plain) && serves(&plain, &guarded) && serves(&guarded, &guarded));
  change(path);
  EXPECT(!serves(&guarded, &plain));
  EXPECT(!serves(&plain, &guarded));
  EXPECT(!serves(&guarded, &guarded));
  struct launchfile now = plan_of("me", "box", path);
  EXPECT(serves(&now, &now));
  EXPECT(!serves(&guarded, &now)); /* built before the change */
  unlink(path);
}
