#include "runner/fork-server.h"

#include "lib/contract.h"
#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/passed-signals.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "runner/tree-watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The owner sees the end of the connection, and starts its launches itself. */
static _Noreturn void give_up(void) { _exit(EXIT_SETUP); }

/* A terminal's signals are for the owner, whose end is ours. No process waits for the children: each reports its end to its client. */
static void ignore_signals(void) {
  static const int named[] = {SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGCHLD};
  sigset_t ignored;
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigemptyset(&ignored);
  add_passed_signals(&ignored);
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) sigaddset(&ignored, named[i]);
  for (int signal = 1; signal < _NSIG; signal++)
    if (sigismember(&ignored, signal) == 1 && sigaction(signal, &ignore, NULL) < 0) give_up();
}

static int move(int fd, int to) {
  int moved = fd_above(fd, to);
  if (moved < 0) give_up();
  return moved;
}

static int is_from(int client, pid_t pid) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid && peer.uid == geteuid() && peer.gid == getegid();
}

/* Where others may write to the directory, one of them may have replaced our socket by another: the owner would send its commands there. */
static int leads_to(int listener) {
  struct sockaddr_un address = socket_address(FORK_SERVER_FD, "");
  int ours = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int is_connected = ours >= 0 && connect(ours, (struct sockaddr *)&address, sizeof address) == 0;
  int client = is_connected ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
  int is_same = client >= 0 && is_from(client, getpid());
  if (ours >= 0) close(ours);
  return close_with(client, is_same);
}

/* The name is gone before anybody can connect; what stays is a descriptor that leads to the socket. */
static int listen_in(const char *directory) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  /* In the directory itself: an address has room for 107 bytes only. */
  snprintf(address.sun_path, sizeof address.sun_path, ".llm-do-fork-server.%d", getpid());
  int listener = move(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), FORK_SERVER_FD + 1);
  umask(077);
  if (chdir(directory) < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0) give_up();
  int place = open(address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (unlink(address.sun_path) < 0 || move(place, FORK_SERVER_FD) != FORK_SERVER_FD) give_up();
  if (chdir("/") < 0 || listen(listener, SOMAXCONN) < 0 || !leads_to(listener)) give_up();
  return listener;
}

/* -1 where there is none any more. Any other failure would come again at once, and the owner would wait as long as it has runs. */
static int accept_client(int listener) {
  int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) give_up();
  return client;
}

int fork_server(const char *directory, const char *own) {
  pid_t owner = getppid();
  ignore_signals();
  if (sys_close_range(RUN_FD + 1, ~0u) < 0) give_up(); /* a pipe of the owner's caller must not stay open here */
  int listener = listen_in(directory);
  int owner_end = move(sys_pidfd_open(owner), FORK_SERVER_FD + 1); /* none of 0: an owner in another PID namespace, where every process has this number */
  struct pollfd watched[] = {{RUN_FD, POLLIN, 0}, {listener, POLLIN, 0}};
  if (write(RUN_FD, "", 1) != 1) give_up();
  for (;;) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) give_up();
    if (watched[0].revents) _exit(0);
    int client = watched[1].revents ? accept_client(listener) : -1;
    if (client < 0) continue;
    /* A client that is let down has not been told that its command is taken, and goes another way. */
    if (is_from(client, owner) && fork() == 0) return close(listener), close(owner_end), client;
    close(client);
    tree_watcher_start(own, owner_end);
  }
}
