/*
 * container-net NET SOCKET: the host's side of the restricted network of one container (tools/container-network.h).
 *
 * Theory of operation. The runner starts it with the launch file as descriptor 3, before the container is made, and holds its stdin. It
 * starts the helper NET, listens on SOCKET, which is shown in the container, and writes a line when it does. It takes one connection, which
 * init makes before the command exists, gives it the plan, passes the sockets on to the helper and the helper's answer back, and waits
 * for the end of its stdin: the container is gone, or the runner. Then it writes a line with what the command has reached.
 */
#include "lib/fd-message.h"
#include "lib/report-failure.h"
#include "lib/sealed-memory.h"
#include "lib/status.h"
#include "lib/programs.h"
#include "runner/net-helper.h"
#include "sandbox/idmap.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LAUNCH_FILE 3

struct plan {
  char *bytes;
  size_t size;
};

/* One for each reader: they would share the place where they read. */
static int sealed(const struct plan *plan) {
  int fd = memory_sealed(plan->bytes, plan->size, "launch-file");
  if (fd < 0) err(125, "memfd");
  return fd;
}

static int start_helper(struct net_helper *helper, const char *program, const struct plan *plan, int *control) {
  int pair[2], file = sealed(plan);
  uid_t id = getuid() == 0 ? NET_HELPER_ID + (uid_t)getpid() : 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) err(125, "socketpair");
  int inside = net_helper_start(helper, &(struct net_helper_start){program, file, -1, -1, pair[1], id});
  if (inside < 0) err(125, "%s", program);
  close(file), close(pair[1]);
  *control = pair[0];
  return inside;
}

static int listen_at(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof name.sun_path) errx(125, "%s: too long for a socket", path);
  memcpy(name.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  /* Any id may be inside the container; the directory is the caller's alone. */
  if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || chmod(path, 0666) < 0 || listen(fd, 1) < 0) err(125, "%s", path);
  return fd;
}

/* 1 when `fd` can be read, 0 at the end of the run. */
static int wait_for(int fd) {
  struct pollfd either[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  while (poll(either, 2, -1) < 0)
    if (errno != EINTR) err(125, "poll");
  return either[1].revents == 0;
}

static int pass_sockets(int from, int to) {
  struct net_sockets sockets;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(from, &sockets, sizeof sockets, 0, fds, &count);
  if (got != sizeof sockets || count < 0) return -1; /* init has failed, and says why */
  int passed = message_send(to, &sockets, sizeof sockets, fds, count);
  for (int i = 0; i < count; i++) close(fds[i]);
  return passed;
}

/* A helper that fails ends its socket; init then sees its own socket end. */
static int pass_answer(int from, int to) {
  char byte;
  return recv(from, &byte, 1, 0) == 1 && send(to, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static void serve(int listener, const char *path, int inside, const struct plan *plan) {
  if (!wait_for(listener)) return;
  int init = accept4(listener, NULL, NULL, SOCK_CLOEXEC), file = sealed(plan);
  close(listener);
  (void)unlink(path); /* the container shows the inode; no process listens there any more */
  if (init < 0 || message_send(init, "", 1, &file, 1) < 0 || !wait_for(init) || pass_sockets(init, inside) < 0) return (void)close(init);
  if (wait_for(inside)) (void)pass_answer(inside, init); /* the end of the connection says that it was not */
  close(init), close(inside);
}

static void wait_for_end(void) {
  char byte;
  for (;;) {
    ssize_t got = read(0, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

static void put_line(const char *line) {
  if (fputs(line, stdout) < 0 || fputc('\n', stdout) < 0 || fflush(stdout) != 0) exit(125);
}

/* Why the helper could not begin, where it has said so. */
static void put_failure(int control) {
  struct report report;
  if (recv(control, &report, sizeof report, MSG_DONTWAIT) != sizeof report) return;
  report.step[sizeof report.step - 1] = report.path[sizeof report.path - 1] = 0;
  warnx("%s: %s: %s", report.step, report.path, strerror(report.error));
}

int container_network_main(int argc, char **argv) {
  struct net_helper helper = NET_HELPER_NONE;
  struct plan plan;
  int control;
  if (argc != 3) errx(125, "usage: container network NET SOCKET");
  if (!(plan.bytes = read_all(LAUNCH_FILE, LAUNCHFILE_MAX, &plan.size))) err(125, "launch file");
  int inside = start_helper(&helper, argv[1], &plan, &control), listener = listen_at(argv[2]);
  put_line("{\"listening\":true}");
  serve(listener, argv[2], inside, &plan);
  wait_for_end();
  (void)unlink(argv[2]);
  net_helper_finish(&helper);
  put_failure(control);
  fputs("{\"end\":true", stdout);
  status_put_network(stdout, helper.result);
  put_line("}");
  return 0;
}
