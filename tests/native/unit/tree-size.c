#include "lib/tree-size.h"
#include "unit.h"

#define MIB (1ull << 20)

static const char *path;

static void fill(int directory, const char *name) {
  static char block[MIB];
  int file = openat(directory, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  memset(block, 1, sizeof block);
  EXPECT_NUMBER(write(file, block, sizeof block), (long)sizeof block);
  EXPECT(fsync(file) == 0);
  close(file);
}

static uint64_t size_of(int zone, struct tree_size *size) {
  struct walk walk = {.zone = zone, .size = size};
  tree_size_begin(size);
  EXPECT_NUMBER(walk_zone(&walk), 0);
  walk_free(&walk);
  return size->bytes;
}

UNIT("the size of a tree counts a file with several names once, each name, and no directory that another walk begins at") {
  struct tree_size size = {0};
  struct stat status;
  path = unit_directory();
  int zone = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_NUMBER((long)size_of(zone, &size), 0);
  EXPECT_NUMBER((long)size.devices, 1);
  EXPECT(mkdirat(zone, "a", 0700) == 0 && mkdirat(zone, "a/.git", 0700) == 0 && mkdirat(zone, "a/.git/objects", 0700) == 0);
  uint64_t empty = size_of(zone, &size);
  fill(zone, "a/.git/objects/file");
  uint64_t one = size_of(zone, &size);
  EXPECT(one >= empty + MIB + ENTRY_BYTES && one < empty + 2 * MIB);
  EXPECT(linkat(zone, "a/.git/objects/file", zone, "again", 0) == 0);
  EXPECT_NUMBER((long)size_of(zone, &size), (long)(one + ENTRY_BYTES));
  EXPECT(fstatat(zone, "a", &status, 0) == 0);
  size.apart = &(struct identity){status.st_dev, status.st_ino}, size.aparts = 1;
  EXPECT(size_of(zone, &size) < 2 * MIB && size.bytes > MIB);
  EXPECT(unlinkat(zone, "again", 0) == 0);
  EXPECT_NUMBER((long)size_of(zone, &size), 0);
  EXPECT_NUMBER((long)size.devices, 1);
  close(zone);
  unit_remove(path);
}
