/* A command as init runs it. */
#pragma once

#include <sys/types.h>

struct command {
  char **argv;
  char **env;
  mode_t umask; /* the caller's */
  const char *directory; /* of another command in a living sandbox; NULL = that of the run */
};
