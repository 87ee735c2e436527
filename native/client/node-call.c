#include "client/node-call.h"

#include "lib/contract.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern char **environ;

/* Programs that node starts by name are looked for in the system's own directories. */
#define SYSTEM_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static size_t count(char *const *words) {
  size_t n = 0;
  while (words[n]) n++;
  return n;
}

/* Each word with its NUL. */
static int write_words(FILE *file, char *const *words) {
  for (; *words; words++)
    if (fwrite(*words, 1, strlen(*words) + 1, file) != strlen(*words) + 1) return -1;
  return 0;
}

/* The outcome's descriptor, our parent, how many words and variables follow, then those: each ended by NUL. */
static int write_call(FILE *file, const struct node_call *handover) {
  char *first[] = {(char *)(uintptr_t)handover->first, NULL};
  size_t words = count(first) + count(handover->words);
  if (fprintf(file, "%d%c%d%c%zu%c%zu%c", handover->outcome, 0, handover->parent, 0, words, 0, count(environ), 0) < 0) return -1;
  return write_words(file, first) || write_words(file, handover->words) || write_words(file, environ) ? -1 : 0;
}

/* Never one of the standard streams, which a caller may have closed. */
static int above_streams(int fd) {
  if (fd < 0 || fd > 2) return fd;
  int up = fcntl(fd, F_DUPFD, 3);
  close(fd);
  return up;
}

static int seal(int fd) {
  if (lseek(fd, 0, SEEK_SET) < 0) return -1;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
}

static int call_file(const struct node_call *handover) {
  int fd = above_streams(memfd_create("call", MFD_ALLOW_SEALING));
  int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
  FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
  if (!file) return -1;
  int failed = write_call(file, handover);
  return fclose(file) != 0 || failed || seal(fd) < 0 ? -1 : fd;
}

/* By the kernel's link: "." would be searched by its mode, and a directory that was removed still has a place. */
static int caller_directory(void) { return above_streams(open("/proc/self/cwd", O_PATH | O_DIRECTORY)); }

void node_call_exec(const char *node, const char *script, const struct node_call *handover) {
  char variable[64];
  char *const argv[] = {"node", NODE_WITHOUT_DEBUGGER, (char *)(uintptr_t)script, NULL};
  char *const environment[] = {SYSTEM_PATH, variable, NULL};
  sigset_t debugger;
  sigemptyset(&debugger);
  sigaddset(&debugger, SIGUSR1);
  sigprocmask(SIG_BLOCK, &debugger, NULL); /* node takes it once it has a handler; before that it would be the end */
  signal(SIGXFSZ, SIG_IGN); /* EFBIG can be reported; node ignores this signal as well */
  int call = call_file(handover), directory = call < 0 ? -1 : caller_directory();
  if (directory < 0 || chdir("/") < 0) return;
  snprintf(variable, sizeof variable, "LLM_DO_CALL=%d:%d", call, directory);
  execve(node, argv, environment);
}
