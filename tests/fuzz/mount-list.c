/* mountinfo: a warm sandbox compares it with what it saw. A host's users choose the names of mount points. */
#include "runner/host-mounts.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

static const char FILE_BYTES[] = LAUNCH_FILE_MAGIC "\0bind\0/usr\0/usr\0zone\0/srv/data\0/data\0rw\0" "1\0" "2\0closed\0end";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct launchfile file;
  static int list = -1;
  const char *problem;
  if (list < 0 && (launchfile_check(FILE_BYTES, sizeof FILE_BYTES, &file, &problem) < 0 || (list = memfd_create("list", 0)) < 0)) WRONG("set-up");
  if (ftruncate(list, 0) < 0 || pwrite(list, data, size, 0) != (ssize_t)size) WRONG("set-up");
  struct mounts mounts = {.list = {.fd = list}};
  if (mounts_watch(&mounts, &file, "/opt/llm-do/bin/init") < 0) return 0;
  if (mounts_have_changed(&mounts)) WRONG("the same list counts as changed");
  free(mounts.seen);
  return 0;
}
