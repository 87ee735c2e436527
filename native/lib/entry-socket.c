#include "lib/entry-socket.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SUFFIX ".in"

struct sockaddr_un entry_address(int records, const char *id) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.*s" SUFFIX, records, RUN_ID_MAX, id);
  return address;
}

void entry_remove(int records, const char *id) {
  char name[RUN_ID_MAX + sizeof SUFFIX];
  snprintf(name, sizeof name, "%.*s" SUFFIX, RUN_ID_MAX, id);
  unlinkat(records, name, 0);
}
