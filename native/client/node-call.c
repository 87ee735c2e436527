#include "client/node-call.h"

#include "lib/contract.h"
#include "lib/sealed-memory.h"
#include "lib/syscalls.h"
#include "lib/text.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Programs that node starts by name are looked for in the system's own directories. */
#define SYSTEM_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static size_t count(char *const *words) {
  size_t n = 0;
  while (words[n]) n++;
  return n;
}

static void write_words(FILE *file, char *const *words) {
  for (; *words; words++) put_word(file, *words);
}

/* The outcome's descriptor, our parent, how many words and variables follow, then those: each ended by NUL. */
static void write_call(FILE *file, const struct node_call *handover) {
  char *first[] = {(char *)(uintptr_t)handover->first, NULL};
  size_t words = count(first) + count(handover->words);
  fprintf(file, "%d%c%d%c%zu%c%zu%c", handover->outcome, 0, handover->parent, 0, words, 0, count(environ), 0);
  write_words(file, first), write_words(file, handover->words), write_words(file, environ);
}

/* For node, and never one of the standard streams, which a caller may have closed. */
static int above_streams(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD, 3); }

static int call_file(const struct node_call *handover) {
  FILE *file = text_begin();
  if (!file) return -1;
  write_call(file, handover);
  return above_streams(text_sealed("call"));
}

/* By the kernel's link: "." would be searched by its mode, and a directory that was removed still has a place. */
static int caller_directory(void) { return above_streams(open("/proc/self/cwd", O_PATH | O_DIRECTORY | O_CLOEXEC)); }

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
