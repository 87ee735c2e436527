#include "runner/streams.h"

#include "lib/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Flags that fcntl(2) can switch with F_SETFL. */
#define SWITCHES (O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK)

int streams_fill(void) {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return -1;
  return 0;
}

void streams_note(struct streams *streams) {
  for (int fd = 0; fd < 3; fd++) {
    struct stream_state *state = &streams->of[fd];
    state->flags = fcntl(fd, F_GETFL);
    state->is_terminal = state->flags >= 0 && tcgetattr(fd, &state->terminal) == 0;
    state->is_exclusive = 0;
    if (state->is_terminal) ioctl(fd, TIOCGEXCL, &state->is_exclusive);
  }
}

/* ---- whether it is ours to put back ---- */

struct relation {
  pid_t parent, group, foreground; /* the last: the group that its terminal belongs to, -1 = none */
};

static int read_relation(pid_t pid, struct relation *relation) {
  char path[64], text[512], state = 'Z';
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  (void)read_small(AT_FDCWD, path, text, sizeof text);
  const char *rest = strrchr(text, ')');
  int found = rest ? sscanf(rest + 1, " %c %d %d %*d %*d %d", &state, &relation->parent, &relation->group, &relation->foreground) : 0;
  return found == 4 && !strchr("ZXx", state) ? 0 : -1;
}

/* The job of the shell that we are part of. Node starts launch in a new session, without a terminal: then the job is the process group of node.
 * The leader of a session with a terminal is a job alone. */
static struct relation own_job(void) {
  struct relation job = {.parent = getppid(), .group = getpgrp(), .foreground = -1};
  read_relation(getpid(), &job);
  if (getsid(0) == getpid() && job.foreground < 0) read_relation(getppid(), &job);
  return job;
}

/* Our parents wait for us and change nothing meanwhile. */
static int is_ancestor(pid_t process) {
  struct relation relation = {.parent = getppid()};
  for (pid_t at = relation.parent; at > 1; at = relation.parent) {
    if (at == process) return 1;
    if (read_relation(at, &relation) < 0) return 0;
  }
  return 0;
}

static int has_company(pid_t group, pid_t starter) {
  DIR *all = opendir("/proc");
  if (!all) return 1;
  int found = 0;
  for (struct dirent *entry; !found && (entry = readdir(all));) {
    struct relation relation;
    pid_t pid = (pid_t)atoi(entry->d_name);
    if (pid <= 0 || pid == getpid() || read_relation(pid, &relation) < 0 || relation.group != group) continue;
    found = relation.parent != getpid() && !(starter && relation.parent == starter) && !is_ancestor(pid);
  }
  closedir(all);
  return found;
}

static int is_in_background(const struct relation *job) { return job->foreground > 0 && job->foreground != job->group; }

/* ---- putting back ---- */

static int differs(int fd, const struct stream_state *before) {
  struct termios now;
  int flags = fcntl(fd, F_GETFL), is_exclusive = 0;
  if (before->flags < 0 || flags < 0) return 0;
  if ((flags ^ before->flags) & SWITCHES) return 1;
  if (!before->is_terminal || tcgetattr(fd, &now) < 0) return 0;
  ioctl(fd, TIOCGEXCL, &is_exclusive);
  return memcmp(&now, &before->terminal, sizeof now) != 0 || (is_exclusive && !before->is_exclusive);
}

static void put_back(int fd, const struct stream_state *before, const struct relation *job) {
  fcntl(fd, F_SETFL, before->flags);
  if (!before->is_terminal || is_in_background(job)) return;
  if (!before->is_exclusive) ioctl(fd, TIOCNXCL);
  tcsetattr(fd, TCSANOW, &before->terminal);
  tcflow(fd, TCOON); /* should the command have stopped output */
}

void streams_restore(const struct streams *streams) {
  int changed = 0;
  sigset_t stop, before;
  for (int fd = 0; fd < 3; fd++) changed |= differs(fd, &streams->of[fd]);
  if (!changed) return;
  struct relation job = own_job();
  if (has_company(job.group, streams->starter)) return;
  /* The kernel stops a job in the background that asks for this. */
  sigemptyset(&stop);
  sigaddset(&stop, SIGTTOU);
  sigprocmask(SIG_BLOCK, &stop, &before);
  for (int fd = 0; fd < 3; fd++)
    if (differs(fd, &streams->of[fd])) put_back(fd, &streams->of[fd], &job);
  sigprocmask(SIG_SETMASK, &before, NULL);
}
