#include "unit.h"
#include "client/environment.h"

extern char **environ;

/* The command's environment by rules (launch file records after the magic) for a caller's environment, joined by blanks. */
static void expect_environment(char **callers, const char *rules, size_t size, const char *want) {
  static char got[512];
  struct launchfile file = unit_launchfile(rules, size);
  char **saved = environ;
  environ = callers;
  char **all = command_environment(&file, (char *[]){NULL});
  environ = saved;
  got[0] = 0;
  for (char **one = all; one && *one; one++) snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", one == all ? "" : " ", *one);
  EXPECT_TEXT(got, want);
}

#define CALLER(...) ((char *[]){__VA_ARGS__, NULL})

UNIT("a variable is set, and the last rule of a name counts") {
  expect_environment(CALLER("A=caller"), BYTES("variable\0A\0" "1\0variable\0A\0" "2\0end"), "A=2");
}

UNIT("variables are sorted by name, a name before a longer one that starts with it") {
  expect_environment(CALLER("X=1"), BYTES("variable\0B\0" "1\0variable\0A_B\0" "1\0variable\0A\0" "1\0end"), "A=1 A_B=1 B=1");
}

UNIT("of two variables with one name the first is inherited, as getenv(3) has it") {
  expect_environment(CALLER("A=first", "A=second"), BYTES("inherit\0A\0end"), "A=first");
}

UNIT("a locale is the caller's, or the rule's where the caller has none or an empty one") {
  static const char RULES[] = "locale\0LANG\0C.UTF-8\0end";
  expect_environment(CALLER("LANG=de_DE"), RULES, sizeof RULES, "LANG=de_DE");
  expect_environment(CALLER("LANG="), RULES, sizeof RULES, "LANG=C.UTF-8");
  expect_environment(CALLER("X=1"), RULES, sizeof RULES, "LANG=C.UTF-8");
  expect_environment(CALLER("X=1"), BYTES("locale\0LC_ALL\0\0end"), "");
}
