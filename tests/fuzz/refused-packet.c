/* Messages of the kernel's log about refused connections: netlink, with the start of a packet that a command made. */
#include "net/refused.h"
#include "net/verdicts.h"
#include "fuzz.h"

static void read_plan(void) {
  static const char plan[] = LAUNCH_FILE_MAGIC "\0net-name\000198.18.1.0\0api.test\0net-allow\0api.test\00080 443\0api.test\0end";
  static struct launchfile file;
  const char *problem = "";
  if (file.bytes) return;
  if (launchfile_check(plan, sizeof plan, &file, &problem) < 0 || verdicts_read(&file) < 0 || hosts_read(&file) < 0) WRONG("plan: %s", problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_plan();
  refused_read(data, size);
  return 0;
}
