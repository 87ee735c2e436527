#include "lib/hide.h"
#include "lib/guard.h"
#include "unit.h"

/* In the zone /p/app; `at` and `name` as the walk has them. */
static int hides(const char *pattern, const char *at, const char *name, int may_be_directory) {
  const char *patterns[] = {"unlike", pattern};
  struct hide hide = {"/p/app", patterns, COUNT(patterns)};
  return hide_matches(&hide, at, name, may_be_directory);
}

UNIT("a pattern of one word matches a name at any depth, in any case") {
  EXPECT_NUMBER(hides(".env*", "", ".env", 0), 1);
  EXPECT_NUMBER(hides(".env*", "a/b", ".Env.local", 0), 1);
  EXPECT_NUMBER(hides("*.PEM", "a", ".pem", 0), 1);
  EXPECT_NUMBER(hides("k[0-9]?", "a", "k1x", 0), 1);
  EXPECT_NUMBER(hides(".env", "", ".environment", 0), 0);
  EXPECT_NUMBER(hides(".env", ".env", "other", 0), 0); /* hidden by its directory */
  EXPECT_NUMBER(hides("a\\*", "", "a\\x", 0), 1); /* a backslash is a letter */
}

UNIT("a pattern of more words matches the last names of the host's path") {
  EXPECT_NUMBER(hides("config/key", "config", "key", 0), 1);
  EXPECT_NUMBER(hides("config/key", "a/config", "key", 0), 1);
  EXPECT_NUMBER(hides("app/key", "", "key", 0), 1); /* the zone begins below it */
  EXPECT_NUMBER(hides("p/app/key", "", "key", 0), 1);
  EXPECT_NUMBER(hides("x/p/app/key", "", "key", 0), 0);
  EXPECT_NUMBER(hides("config/key", "myconfig", "key", 0), 0);
  EXPECT_NUMBER(hides("con*/key", "con/a", "key", 0), 0); /* a sign stays in its word */
}

UNIT("a slash at the end means what may be a directory") {
  EXPECT_NUMBER(hides("keys/", "a", "keys", 1), 1);
  EXPECT_NUMBER(hides("keys/", "a", "keys", 0), 0);
  EXPECT_NUMBER(hides("a/keys/", "a", "keys", 1), 1);
}

UNIT("a zone in a hidden directory, or one itself, is known") {
  const char *patterns[] = {"keys/", "*.pem"};
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/keys", patterns, 2}, 1), 1);
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/Keys/deep/er", patterns, 2}, 1), 1);
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/a.pem", patterns, 2}, 0), 1);
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/keys", patterns, 2}, 0), 0); /* a file */
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/monkeys", patterns, 2}, 1), 0);
  EXPECT_NUMBER(hide_holds(&(struct hide){"/p/keys", patterns, 0}, 1), 0);
}

#define ZONE(path) "zone\0" path "\0/in" path "\0ro\0" "1\0" "1\0closed\0"
#define HIDE(path, pattern) "hide\0" path "\0/in" path "\0" pattern "\0"

UNIT("the patterns of a zone stand behind it, and nowhere else") {
  struct launchfile file = unit_launchfile(BYTES(ZONE("/a") HIDE("/a", "one") HIDE("/a", "two") ZONE("/b") ZONE("/c") HIDE("/c", "three") "end"));
  static const size_t WANT[] = {2, 0, 1};
  struct entry entry;
  size_t position = 0, zones = 0;
  while (launchfile_next(&file, &position, &entry)) {
    struct hide hide;
    if (entry.verb != V_ZONE) continue;
    EXPECT_NUMBER(hide_read(&hide, &file, &entry), 0);
    EXPECT_NUMBER(hide.patterns, WANT[zones++]);
    hide_free(&hide);
  }
  EXPECT_NUMBER(zones, COUNT(WANT));
  struct launchfile astray = unit_launchfile(BYTES("hide\0/a\0/in/a\0one\0end"));
  struct guard guard;
  errno = 0;
  EXPECT_NUMBER(guard_prepare(&guard, &astray), -1);
  EXPECT_NUMBER(errno, EINVAL);
}
