/* Changes of a layer: which are applied, and which are protected. */
#include "lib/repository.h"
#include "tools/layer-choice.h"
#include "tools/layer-protected.h"
#include "unit.h"

#define FILE_MODE (S_IFREG | 0644)
#define DIRECTORY_MODE (S_IFDIR | 0755)
#define LINK_MODE (S_IFLNK | 0777)
#define PIPE_MODE (S_IFIFO | 0644)

static const char *NAMES[] = {".envrc", ".github/workflows"};
static struct protected_zone ZONES[] = {{NAMES, COUNT(NAMES), ""}};

static struct list list_of(const struct listed *items, size_t count) {
  struct list list = {0};
  for (size_t i = 0; i < count; i++) {
    struct listed item = items[i];
    if (!item.other) item.other = "";
    if (!item.now) item.now = FILE_MODE;
    EXPECT_NUMBER(list_add(&list, &item), 0);
  }
  list_relate(&list);
  return list;
}

static struct list judged(const struct listed *items, size_t count, struct protected_zone *zone) {
  struct protection protection = {.zone = zone, .zones = 1};
  struct list list = list_of(items, count);
  EXPECT_NUMBER(protection_end(&protection), 0);
  EXPECT_NUMBER(protect_list(&protection, &list), 0);
  return list;
}

static void expect_protected(const struct listed *items, size_t count, const char *want) {
  struct list list = judged(items, count, ZONES);
  char got[64];
  for (size_t i = 0; i < count; i++) got[i] = list.item[i].is_protected ? 'p' : '-';
  got[count] = 0;
  EXPECT_TEXT(got, want);
}

UNIT("a change is protected by its path, and by what it makes of what lies below") {
  static const struct {
    const char *want;
    struct listed item;
  } ROWS[] = {
      {"p", {.kind = ADDED, .path = ".envrc"}},
      {"p", {.kind = MODIFIED, .path = ".github/workflows/ci.yml"}},
      {"p", {.kind = MODIFIED, .path = ".git/config"}},
      {"p", {.kind = ADDED, .path = ".git/hooks/pre-commit"}},
      {"p", {.kind = ADDED, .path = "a/b/.git/hooks/pre-commit"}},
      {"p", {.kind = ADDED, .path = ".git/objects/info/alternates"}},
      {"p", {.kind = ADDED, .path = "a/.git", .now = DIRECTORY_MODE}},
      {"p", {.kind = MODIFIED, .path = "a/.git"}},
      {"p", {.kind = ADDED, .path = ".git/modules/x", .now = DIRECTORY_MODE}},
      {"p", {.kind = MODIFIED, .path = ".git/modules/x/config"}},
      {"p", {.kind = MODIFIED, .path = ".git/modules/x/modules/y/config"}},
      {"p", {.kind = MODE, .path = "a/.git", .now = DIRECTORY_MODE}},
      {"p", {.kind = MODE, .path = "tool", .is_privileged = 1}},
      {"p", {.kind = DELETED, .path = ".git", .now = DIRECTORY_MODE}},
      {"p", {.kind = ADDED, .path = ".github", .now = LINK_MODE, .other = "template"}},
      {"p", {.kind = SYMLINK, .path = ".github", .now = LINK_MODE, .other = "x"}},
      {"p", {.kind = TYPE, .path = ".github", .now = LINK_MODE, .other = "x"}},
      {"p", {.kind = RENAMED, .path = ".github", .now = DIRECTORY_MODE, .other = "template"}},
      {"p", {.kind = RENAMED, .path = ".github/workflows", .now = DIRECTORY_MODE, .other = "x"}},
      {"p", {.kind = ADDED, .path = ".git/info", .now = LINK_MODE, .other = "../x"}},
      {"p", {.kind = RENAMED, .path = ".git/objects/info", .now = DIRECTORY_MODE, .other = "x"}},
      {"p", {.kind = ADDED, .path = "a/.hg", .now = DIRECTORY_MODE}},
      {"p", {.kind = MODIFIED, .path = ".hg/hgrc"}},
      {"p", {.kind = ADDED, .path = ".jj/repo"}},
      {"p", {.kind = MODIFIED, .path = ".jj/repo/config.toml"}},
      {"p", {.kind = MODIFIED, .path = "file", .zone = 1}}, /* of which the record knows nothing */
      {"-", {.kind = ADDED, .path = ".git/objects/ab/cd"}},
      {"-", {.kind = MODIFIED, .path = ".git/refs/heads/main"}},
      {"-", {.kind = MODIFIED, .path = ".git/index"}},
      {"-", {.kind = MODIFIED, .path = ".git/modules/x/HEAD"}},
      {"-", {.kind = MODIFIED, .path = ".hg/store/data"}},
      {"-", {.kind = MODIFIED, .path = ".jj/repo/op"}},
      {"-", {.kind = ADDED, .path = ".envrc.example"}},
      {"-", {.kind = ADDED, .path = ".github/CODEOWNERS"}},
      {"-", {.kind = MODIFIED, .path = "config"}},
      {"-", {.kind = MODIFIED, .path = "x.git/config"}},
      {"-", {.kind = ADDED, .path = ".github", .now = DIRECTORY_MODE}},
      {"-", {.kind = ADDED, .path = ".git/hook", .now = LINK_MODE, .other = "x"}},
      {"-", {.kind = RENAMED, .path = ".github/x", .now = DIRECTORY_MODE, .other = "template"}},
  };
  for (size_t i = 0; i < COUNT(ROWS); i++) expect_protected(&ROWS[i].item, 1, ROWS[i].want);
}

UNIT("what git would take for a repository is one, and a change that makes one of a directory") {
  const struct listed bare[] = {{.kind = GIT, .path = "bare"}, {.kind = MODIFIED, .path = "bare/config"}, {.kind = MODIFIED, .path = "bare/packed-refs"}, {.kind = MODIFIED, .path = "config"}};
  expect_protected(bare, COUNT(bare), "-p--");
  struct listed made[] = {{.kind = NEW_GIT, .path = "d"},          {.kind = ADDED, .path = "d/HEAD"},    {.kind = ADDED, .path = "d/commondir"},
                          {.kind = ADDED, .path = "d/description"}, {.kind = ADDED, .path = "d/objects"}, {.kind = ADDED, .path = "d/refs"},
                          {.kind = ADDED, .path = "d/refs/heads"}};
  expect_protected(made, COUNT(made), "-pp-ppp");
  made[0].kind = GIT; /* in one that was there before, all but the closed names are the command's */
  expect_protected(made, COUNT(made), "--p----");
  const struct listed root[] = {{.kind = GIT, .path = "."}, {.kind = MODIFIED, .path = "config"}, {.kind = MODIFIED, .path = "a/config"}};
  expect_protected(root, COUNT(root), "-p-");
  const struct listed renamed[] = {{.kind = RENAMED, .path = "new", .now = DIRECTORY_MODE, .other = "old"}, {.kind = GIT, .path = "new"}, {.kind = MODIFIED, .path = "new/x"}};
  expect_protected(renamed, COUNT(renamed), "p-p");
}

UNIT("what goes with a protected change is protected: its tree, its source, the directory above it") {
  const struct listed sources[] = {
      {.kind = RENAMED, .path = ".github", .now = DIRECTORY_MODE, .other = "template"},
      {.kind = DELETED, .path = "template", .now = DIRECTORY_MODE},
      {.kind = DELETED, .path = "template/workflows", .now = DIRECTORY_MODE, .nested = 1},
      {.kind = DELETED, .path = "template2", .now = DIRECTORY_MODE},
  };
  expect_protected(sources, COUNT(sources), "ppp-");
  const struct listed above[] = {{.kind = DELETED, .path = ".github", .now = DIRECTORY_MODE}, {.kind = DELETED, .path = ".github/workflows", .now = DIRECTORY_MODE, .nested = 1}};
  expect_protected(above, COUNT(above), "pp");
  const struct listed tree[] = {{.kind = ADDED, .path = "a/.git", .now = DIRECTORY_MODE}, {.kind = ADDED, .path = "a/.git/x"}, {.kind = ADDED, .path = "a/x"}};
  expect_protected(tree, COUNT(tree), "pp-");
}

UNIT("a path through more repositories than any project has is protected") {
  char path[2048] = "";
  for (int i = 0; i < 65; i++) strcat(path, ".git/x/");
  strcat(path, "y");
  const struct listed deep[] = {{.kind = ADDED, .path = path}}, less[] = {{.kind = ADDED, .path = path + strlen(".git/x/")}};
  expect_protected(deep, 1, "p");
  expect_protected(less, 1, "-");
}

UNIT("what the policy has opened is not protected") {
  struct protected_zone open[] = {{NULL, 0, NULL}, {NULL, 0, "config"}, {NULL, 0, ".git"}};
  const struct listed config = {.kind = MODIFIED, .path = ".git/config"};
  for (size_t i = 0; i < COUNT(open); i++) EXPECT_NUMBER(judged(&config, 1, &open[i]).item[0].is_protected, 0);
}

UNIT("what the guard has closed is protected, with all in it, and with what would exchange it") {
  static const struct {
    struct listed item;
    int want;
  } ROWS[] = {
      {{.kind = MODIFIED, .path = "run/me"}, 1},  {{.kind = MODIFIED, .path = "run/me/deep"}, 1},     {{.kind = MODIFIED, .path = "run/you"}, 0},
      {{.kind = MODIFIED, .path = "run/m"}, 0},   {{.kind = ADDED, .path = "run", .now = LINK_MODE}, 1}, {{.kind = ADDED, .path = "run", .now = DIRECTORY_MODE}, 0},
      {{.kind = MODIFIED, .path = "run/me", .zone = 1}, 1}, {{.kind = MODIFIED, .path = "x", .zone = 1}, 1},
  };
  struct protected_zone zones[] = {ZONES[0], ZONES[0]};
  struct protection protection = {.zone = zones, .zones = COUNT(zones)};
  EXPECT_NUMBER(protection_close(&protection, 0, "run/me"), 0);
  EXPECT_NUMBER(protection_close(&protection, 1, "."), 0);
  EXPECT_NUMBER(protection_end(&protection), 0);
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    struct list list = list_of(&ROWS[i].item, 1);
    EXPECT_NUMBER(protect_list(&protection, &list), 0);
    EXPECT_NUMBER(list.item[0].is_protected, ROWS[i].want);
  }
}

/* ---- choices ---- */

static struct layer_zone PLACES[] = {{.source = "/host/project"}};
static const struct layer LAYER = {.zone = PLACES, .zones = 1};

/* The paths that are chosen, then those that are left out. */
static const char *chosen(const struct listed *items, size_t count, struct wish wish) {
  static char text[512];
  struct list list = judged(items, count, ZONES);
  size_t length = 0;
  long done = choose_changes(&list, &LAYER, &wish);
  if (done > 0) return "unknown";
  EXPECT_NUMBER(done, 0);
  text[0] = 0;
  for (size_t i = 0; i < count; i++)
    if (list.item[i].is_chosen) length += (size_t)snprintf(text + length, sizeof text - length, "%s ", items[i].path);
  length += (size_t)snprintf(text + length, sizeof text - length, "-");
  for (size_t i = 0; i < count; i++)
    if (list.item[i].is_left) length += (size_t)snprintf(text + length, sizeof text - length, " %s", items[i].path);
  return text;
}

static const char *at(const struct listed *items, size_t count, const char *path) {
  char *paths[] = {(char *)(uintptr_t)path};
  return chosen(items, count, (struct wish){.path = paths, .paths = 1});
}

static const struct listed CHANGES[] = {
    {.kind = MODIFIED, .path = "file"},
    {.kind = ADDED, .path = "new", .now = DIRECTORY_MODE},
    {.kind = ADDED, .path = "new/.git", .now = DIRECTORY_MODE},
    {.kind = ADDED, .path = "new/.git/HEAD"},
    {.kind = ADDED, .path = "new/deep", .now = DIRECTORY_MODE},
    {.kind = ADDED, .path = "new/deep/one"},
    {.kind = ADDED, .path = "pipe", .now = PIPE_MODE},
};
#define ALL CHANGES, COUNT(CHANGES)

UNIT("all is chosen but what is protected, of which the root is named, and what is special") {
  EXPECT_TEXT(chosen(ALL, (struct wish){0}), "file new new/deep new/deep/one - new/.git pipe");
  EXPECT_TEXT(chosen(ALL, (struct wish){.is_for_all = 1}), "file new new/.git new/.git/HEAD new/deep new/deep/one - pipe");
}

UNIT("a path names what is in it, with the new directories above; what is new is named with what is protected in it, unless no person names it") {
  char *git[] = {(char *)(uintptr_t)"new/.git"};
  EXPECT_TEXT(at(ALL, "new/deep/one"), "new new/deep new/deep/one -");
  EXPECT_TEXT(at(ALL, "new/.git"), "new new/.git new/.git/HEAD -");
  EXPECT_TEXT(at(ALL, "new/.git/HEAD"), "new new/.git new/.git/HEAD -");
  EXPECT_TEXT(chosen(ALL, (struct wish){.path = git, .paths = 1, .is_not_a_person = 1}), "- new/.git");
  const struct listed in_git[] = {{.kind = MODIFIED, .path = ".git/config"}, {.kind = MODIFIED, .path = ".git/index"}};
  EXPECT_TEXT(at(in_git, COUNT(in_git), ".git"), ".git/index - .git/config");
}

UNIT("a path is meant as it is written, in the zone or on the host") {
  static const char *const SAME[] = {"file", "./file", "file/", "x/../file", ".//file/.", "/host/project/file", "/host/x/../project//file"};
  static const char *const NONE[] = {"missing", "../file", "/host/other/file", "/host/project2/file", "/host", "fil", "../project/file"};
  static const char *const EVERYTHING[] = {"", ".", "./", "x/..", "/host/project", "/host/project/"};
  for (size_t i = 0; i < COUNT(SAME); i++) EXPECT_TEXT(at(ALL, SAME[i]), "file -");
  for (size_t i = 0; i < COUNT(NONE); i++) EXPECT_TEXT(at(ALL, NONE[i]), "unknown");
  for (size_t i = 0; i < COUNT(EVERYTHING); i++) EXPECT_TEXT(at(ALL, EVERYTHING[i]), "file new new/deep new/deep/one - new/.git pipe");
}
