#include "terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int write_all(int fd, const char *bytes, ssize_t size) {
  while (size > 0) {
    ssize_t sent = write(fd, bytes, (size_t)size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return -1;
    bytes += sent;
    size -= sent;
  }
  return 0;
}

/* Moves one buffer. Returns 0 at the end of input or when the other side is gone (EIO: the terminal's last slave closed). */
static int move(int from, int to) {
  char buffer[16 << 10];
  ssize_t got = read(from, buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return 1;
  return got > 0 && write_all(to, buffer, got) == 0;
}

void terminal_resize(const struct terminal *terminal) {
  struct winsize size;
  if (terminal->master >= 0 && ioctl(terminal->output, TIOCGWINSZ, &size) == 0) ioctl(terminal->master, TIOCSWINSZ, &size);
}

void terminal_connect(struct terminal *terminal, int master, int input, int output) {
  terminal->master = master;
  terminal->input = input;
  terminal->output = output;
  terminal_resize(terminal);
  if (tcgetattr(input, &terminal->before) < 0) return; /* a pipe: nothing to switch */
  struct termios raw = terminal->before;
  cfmakeraw(&raw);
  terminal->raw = tcsetattr(input, TCSANOW, &raw) == 0;
}

void terminal_watch(const struct terminal *terminal, struct pollfd watched[2]) {
  watched[0] = (struct pollfd){terminal->master, POLLIN, 0};
  watched[1] = (struct pollfd){terminal->master >= 0 ? terminal->input : -1, POLLIN, 0};
}

static void end_input(struct terminal *terminal) {
  /* What a person does to end input; the program decides what it means. */
  static const char end_of_transmission = 4;
  write_all(terminal->master, &end_of_transmission, 1);
  terminal->input = -1;
}

void terminal_relay(struct terminal *terminal, const struct pollfd watched[2]) {
  if (watched[0].revents && !move(terminal->master, terminal->output)) {
    close(terminal->master);
    terminal->master = -1;
    return;
  }
  if (watched[1].revents && !move(terminal->input, terminal->master)) end_input(terminal);
}

void terminal_finish(struct terminal *terminal) {
  struct pollfd left = {terminal->master, POLLIN, 0};
  while (terminal->master >= 0 && poll(&left, 1, 0) > 0 && (left.revents & POLLIN))
    if (!move(terminal->master, terminal->output)) break;
  if (terminal->raw) tcsetattr(terminal->input >= 0 ? terminal->input : 0, TCSANOW, &terminal->before);
}
