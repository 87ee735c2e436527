/* unit [-v] [WORD]   runs every unit whose title has WORD in it. The last line is `N passed, N failed`. */
#include "unit.h"

#include <ftw.h>

#define UNITS_MAX 512

static struct unit {
  const char *title, *file;
  void (*run)(void);
} units[UNITS_MAX];
static size_t unit_count;
static const struct unit *running;
static int has_failed;

void unit_register(const char *title, void (*run)(void), const char *file) {
  if (unit_count == UNITS_MAX) abort();
  units[unit_count++] = (struct unit){title, file, run};
}

/* scripts/test.mjs repeats a line that starts with FAIL, and the one after it, at the end of its log. */
static void complain(const char *file, int line) {
  if (!has_failed) printf("FAIL %s: %s\n", running->file, running->title);
  has_failed = 1;
  printf("     %s:%d: ", file, line);
}

void unit_expect(int holds, const char *claim, const char *file, int line) {
  if (holds) return;
  complain(file, line);
  printf("expected %s\n", claim);
}

void unit_expect_number(long long got, long long want, const char *what, const char *file, int line) {
  if (got == want) return;
  complain(file, line);
  printf("%s: expected %lld, got %lld\n", what, want, got);
}

void unit_expect_text(const char *got, const char *want, const char *what, const char *file, int line) {
  if (got && strcmp(got, want) == 0) return;
  complain(file, line);
  printf("%s:\n       expected %s\n       got      %s\n", what, want, got ? got : "(null)");
}

int unit_has_failed(void) { return has_failed; }

const char *unit_directory(void) {
  static char path[32];
  strcpy(path, "/tmp/llm-do-unit-XXXXXX");
  EXPECT(mkdtemp(path) != NULL);
  return path;
}

static int drop(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status, (void)type, (void)at;
  return remove(path);
}

void unit_remove(const char *path) { EXPECT(nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS) == 0); }

struct launchfile unit_launchfile(const char *records, size_t size) {
  static char bytes[2048];
  struct launchfile file = {0};
  const char *problem;
  memcpy(bytes, LAUNCH_FILE_MAGIC, sizeof LAUNCH_FILE_MAGIC);
  memcpy(bytes + sizeof LAUNCH_FILE_MAGIC, records, size);
  EXPECT_NUMBER(launchfile_check(bytes, sizeof LAUNCH_FILE_MAGIC + size, &file, &problem), 0);
  return file;
}

int main(int argc, char **argv) {
  int is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0, passed = 0, failed = 0;
  const char *word = argc > 1 + is_verbose ? argv[1 + is_verbose] : "";
  for (running = units; running < units + unit_count; running++) {
    if (!strstr(running->title, word)) continue;
    has_failed = 0;
    running->run();
    if (has_failed) failed++;
    else passed++;
    if (is_verbose && !has_failed) printf("ok   %s\n", running->title);
    fflush(stdout); /* what has been said survives a sanitizer's end */
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0;
}
