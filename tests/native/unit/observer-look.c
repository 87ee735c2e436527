/* Of this process itself, whose root is the host's. */
#include "runner/observer-look.h"
#include "unit.h"

#include <stdint.h>
#include <sys/mman.h>

static const char *base;
static int before; /* the directory of the other units */

/* BASE holds `file`, `below/`, and links: to, to nothing, to each other. */
static void make_base(void) {
  base = unit_directory();
  before = open(".", O_PATH | O_CLOEXEC);
  EXPECT(before >= 0 && chdir(base) == 0);
  close(open("file", O_CREAT | O_WRONLY, 0600));
  EXPECT(mkdir("below", 0700) == 0 && symlink("../file", "below/to") == 0 && symlink("/nowhere/at/all", "nothing") == 0);
  EXPECT(symlink("two", "one") == 0 && symlink("one", "two") == 0);
}

static void remove_base(void) {
  EXPECT(fchdir(before) == 0 && close(before) == 0);
  unit_remove(base);
}

/* "MISSING PATH" with BASE as `@`; "none" where nothing can be said. */
static void expect_place(const char *path, int follows, const char *want) {
  struct place place;
  char got[2048] = "none";
  if (place_find(&place, getpid(), AT_FDCWD, path, follows) == 0) {
    int is_below = strncmp(place.path, base, strlen(base)) == 0;
    snprintf(got, sizeof got, "%d %s%s", place.missing, is_below ? "@" : "", place.path + (is_below ? strlen(base) : 0));
    close(place.fd);
  }
  EXPECT_TEXT(got, want);
}

UNIT("a path leads to a file, or to the directory where its first name is missing, through links") {
  make_base();
  expect_place("file", 1, "0 @/file");
  expect_place("./below/../below/to", 1, "0 @/file");
  expect_place("below/to", 0, "0 @/below/to");
  expect_place("new", 1, "1 @/new");
  expect_place("below/new/other", 1, "2 @/below/new/other");
  expect_place("nothing", 1, "3 /nowhere/at/all");
  expect_place("nothing/more", 1, "4 /nowhere/at/all/more");
  expect_place("nothing", 0, "0 @/nothing");
  expect_place("one", 1, "none");
  expect_place("file/x", 1, "none");
  expect_place("/", 1, "0 /");
  expect_place("//nowhere///x//", 1, "2 /nowhere///x//");
  remove_base();
}

UNIT("a process that is not there, and a descriptor that is none, are nothing to look at") {
  struct place place;
  EXPECT_NUMBER(place_find(&place, 0x7ffffff0, AT_FDCWD, "/", 1), -1);
  EXPECT_NUMBER(place_find(&place, getpid(), 12345, "x", 1), -1);
}

UNIT("a text is read up to the end of what can be read, and no further") {
  char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[1024];
  EXPECT(munmap(pages + 4096, 4096) == 0);
  memset(pages, 'a', 4096);
  strcpy(pages + 4090, "/path");
  EXPECT_NUMBER(process_read_text(getpid(), (uintptr_t)pages + 4090, to, sizeof to), 0);
  EXPECT_TEXT(to, "/path");
  pages[4095] = 'x';
  EXPECT(process_read_text(getpid(), (uintptr_t)pages + 4090, to, sizeof to) < 0 && errno == ENAMETOOLONG);
  EXPECT(process_read_text(getpid(), (uintptr_t)pages + 4096, to, sizeof to) < 0 && errno == EFAULT);
  EXPECT(process_read_text(getpid(), UINT64_MAX, to, sizeof to) < 0);
  munmap(pages, 4096);
}

UNIT("the host is asked name by name, through links and not for ever") {
  make_base();
  int root = open("/", O_PATH | O_DIRECTORY);
  static const struct {
    const char *path;
    int has;
  } ROWS[] = {{"/file", 1}, {"/below/to", 1}, {"/below/to/x", 0}, {"/new", 0}, {"/nothing", 0}, {"/one", 0}, {"/below//../file", 1}, {"", 1}};
  for (size_t i = 0; i < COUNT(ROWS); i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s%s", base, ROWS[i].path);
    EXPECT_NUMBER(host_has(root, path), ROWS[i].has);
  }
  close(root);
  remove_base();
}
