/* scan DIRECTORY...: on the host. Prints the files below each that carry set-id bits or file capabilities, one a line: kind, owner, path. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static int look(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)place;
  if (kind != FTW_F && kind != FTW_D && kind != FTW_DNR) return 0;
  if (kind == FTW_F && status->st_mode & 06000) printf("set-id %u %s\n", status->st_uid, path);
  if (lgetxattr(path, "security.capability", NULL, 0) >= 0) printf("capability %u %s\n", status->st_uid, path);
  return 0;
}

int main(int count, char **words) {
  if (count < 2) return 2;
  for (int at = 1; at < count; at++)
    if (nftw(words[at], look, 32, FTW_PHYS) < 0) return 1;
  return 0;
}
