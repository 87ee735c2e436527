/*
 * launch: starts the native runner on a launch file as its callers do, without node or the client: one command without an environment,
 * its streams our own.
 *
 *   launch RUNNER LAUNCH_FILE COMMAND [ARG...]
 *
 * Ends with the runner's status.
 */
#include "lib/frames.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t block_of(char **words, char *block, size_t room) {
  size_t count = 0, used;
  while (words[count]) count++;
  used = (size_t)snprintf(block, room, "%zu%c0%c%u%c", count, 0, 0, 022u, 0); /* no variables; the umask */
  for (; *words; words++) {
    size_t size = strlen(*words) + 1;
    if (used + size > room) errx(2, "the command is too long");
    memcpy(block + used, *words, size);
    used += size;
  }
  return used;
}

static void talk(int fd, char **words) {
  static char block[64 << 10], nothing[4096];
  struct frame header = {FRAME_RUN, (uint32_t)block_of(words, block, sizeof block)};
  if (write(fd, &header, sizeof header) != sizeof header || write(fd, block, header.size) != (ssize_t)header.size) err(2, "socket");
  while (read(fd, nothing, sizeof nothing) > 0) continue;
}

static void become_runner(const char *runner, int file, int socket) {
  int high = fcntl(socket, F_DUPFD_CLOEXEC, 16), source = fcntl(file, F_DUPFD_CLOEXEC, 16);
  if (dup2(source, LAUNCH_FILE_FD) < 0 || dup2(high, RUN_FD) < 0) err(2, "dup2");
  execl(runner, "llm-do", "__launch", "--streams", "own", NULL);
  err(2, "%s", runner);
}

int main(int argc, char **argv) {
  int ends[2], status, file = argc > 3 ? open(argv[2], O_RDONLY) : -1;
  if (file < 0) err(2, "launch RUNNER LAUNCH_FILE COMMAND...");
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) err(2, "socketpair");
  pid_t child = fork();
  if (child < 0) err(2, "fork");
  if (child == 0) become_runner(argv[1], file, ends[1]);
  close(ends[1]);
  talk(ends[0], argv + 3);
  close(ends[0]); /* the runner waits a moment for that */
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
