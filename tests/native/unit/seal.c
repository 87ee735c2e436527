/* Where the secret of the seals is taken from. */
#include "lib/seal.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Our directory in a base of that mode, with a key in it. */
static char base[64], own[96], key[128];

static void make_key(mode_t mode) {
  snprintf(base, sizeof base, "/dev/shm/llm-do-unit-XXXXXX");
  EXPECT(mkdtemp(base) != NULL);
  snprintf(own, sizeof own, "%s/llm-do", base), snprintf(key, sizeof key, "%s/key", own);
  EXPECT(mkdir(own, 0700) == 0 && chmod(base, mode) == 0);
  int fd = open(key, O_WRONLY | O_CREAT | O_EXCL, 0600);
  EXPECT_NUMBER(write(fd, "0123456789abcdef0123456789abcdef", SECRET_BYTES), SECRET_BYTES);
  close(fd);
}

/* By that name in the base. */
static int read_key(const char *name, mode_t mode) {
  char place[128];
  unsigned char secret[SECRET_BYTES];
  make_key(mode);
  snprintf(place, sizeof place, "%s/%s", base, name);
  int done = secret_read_in(place, secret);
  EXPECT(unlink(key) == 0 && rmdir(own) == 0 && rmdir(base) == 0);
  return done;
}

UNIT("a secret is that of a runtime directory: the records of a user without one lie where a command may have written") {
  EXPECT_NUMBER(read_key("llm-do", 0700), 0);
  EXPECT_NUMBER(read_key("llm-do-1000", 0700), -1);
  EXPECT_NUMBER(read_key("run", 0700), -1);
}

UNIT("a secret is none where another user can rename its directory") {
  EXPECT_NUMBER(read_key("llm-do", 01777), -1);
  EXPECT_NUMBER(read_key("llm-do", 0775), -1);
}
