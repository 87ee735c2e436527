#include "runner/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Most that a call on the caller's streams may block; two of them come between two looks at the limits. */
#define CALL_NS (10 * 1000000l)

static void on_timer(int signal) { (void)signal; }

#define TERMINAL_BUFFER (16 << 10)

/* Not SIGALRM: a caller may have set an alarm before it became us. */
static int make_timer(timer_t *timer) {
  struct sigaction interrupt = {.sa_handler = on_timer}; /* without SA_RESTART */
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  return sigaction(SIGRTMIN, &interrupt, NULL) < 0 ? -1 : timer_create(CLOCK_MONOTONIC, &event, timer);
}

/* It repeats: a signal that comes before the call would interrupt nothing. */
static void bound_calls(timer_t timer, long nanoseconds) {
  struct itimerspec every = {{0, nanoseconds}, {0, nanoseconds}};
  timer_settime(timer, 0, &every, NULL);
}

static int must_wait(ssize_t moved) { return moved < 0 && (errno == EAGAIN || errno == EINTR); }

/* 0 at the end of input or when the other side is gone (EIO: the terminal's last slave closed). */
static int fill(struct channel *channel, int from) {
  ssize_t got = read(from, channel->bytes, TERMINAL_BUFFER);
  channel->at = channel->end = 0;
  if (got > 0) channel->end = (size_t)got;
  return got > 0 || must_wait(got);
}

static size_t left_in(const struct channel *channel) { return channel->end - channel->at; }

/* 0 when its reader is gone. */
static int drain(struct channel *channel, int to, size_t most) {
  size_t size = left_in(channel) < most ? left_in(channel) : most;
  ssize_t sent = write(to, channel->bytes + channel->at, size);
  if (sent > 0) channel->at += (size_t)sent;
  return sent >= 0 || must_wait(sent);
}

static void empty(struct channel *channel) { channel->at = channel->end = 0; }

void terminal_none(struct terminal *terminal) {
  terminal->master = terminal->input = terminal->output = (struct source)SOURCE_NONE;
  terminal->raw = -1;
  terminal->is_within_line = 0;
  terminal->typed = terminal->shown = (struct channel){0, 0, NULL};
}

void terminal_resize(const struct terminal *terminal) {
  struct winsize size;
  if (terminal->master.fd >= 0 && ioctl(terminal->output.fd, TIOCGWINSZ, &size) == 0) ioctl(terminal->master.fd, TIOCSWINSZ, &size);
}

static void hang_up(struct terminal *terminal) {
  loop_close(&terminal->master);
  empty(&terminal->typed);
}

void terminal_connect(struct terminal *terminal, int master, int input, int output) {
  static char typed[TERMINAL_BUFFER], shown[TERMINAL_BUFFER];
  terminal->typed.bytes = typed;
  terminal->shown.bytes = shown;
  terminal->master.fd = master;
  terminal->input.fd = input;
  terminal->output.fd = output;
  /* A master that blocks is worth no run: without it the command sees a hangup. */
  if (make_timer(&terminal->timer) < 0 || fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK) < 0) return hang_up(terminal);
  terminal_resize(terminal);
  if (tcgetattr(input, &terminal->before) < 0) return; /* a pipe: nothing to switch */
  struct termios raw = terminal->before;
  cfmakeraw(&raw);
  if (tcsetattr(input, TCSANOW, &raw) == 0) terminal->raw = input;
}

void terminal_watch(struct terminal *terminal) {
  int is_typed = left_in(&terminal->typed) > 0, is_shown = left_in(&terminal->shown) > 0, is_there = terminal->master.fd >= 0;
  loop_watch(&terminal->master, (is_shown ? 0 : EPOLLIN) | (is_typed ? EPOLLOUT : 0));
  loop_watch(&terminal->input, is_there && !is_typed ? EPOLLIN : 0);
  loop_watch(&terminal->output, is_shown ? EPOLLOUT : 0);
}

/* The key that ends input; the program decides what it means. */
#define END_OF_TRANSMISSION 4

/* A terminal that gives its reader whole lines. */
static int is_in_line_mode(int master) {
  struct termios mode;
  return tcgetattr(master, &mode) == 0 && (mode.c_lflag & ICANON);
}

/* Within a line it only ends the line, without a newline: it takes a second one there. */
static void end_input(struct terminal *terminal) {
  terminal->input.fd = -1;
  memset(terminal->typed.bytes, END_OF_TRANSMISSION, 2);
  terminal->typed.end = terminal->is_within_line && is_in_line_mode(terminal->master.fd) ? 2 : 1;
}

static int type(struct terminal *terminal) {
  struct channel *typed = &terminal->typed;
  int is_open = fill(typed, terminal->input.fd);
  if (typed->end > 0) terminal->is_within_line = !memchr("\n\r\4", typed->bytes[typed->end - 1], 3);
  return is_open;
}

static void relay_master(struct terminal *terminal) {
  const struct source *master = &terminal->master;
  if ((master->events & EPOLLIN) && (master->got & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !fill(&terminal->shown, master->fd))
    return hang_up(terminal);
  if (!left_in(&terminal->typed)) return;
  /* With a hangup there are no more readers, and poll would return at once for ever. */
  if (master->got & EPOLLHUP) empty(&terminal->typed);
  else if ((master->got & EPOLLOUT) && !drain(&terminal->typed, master->fd, TERMINAL_BUFFER)) hang_up(terminal);
}

static void relay_caller(struct terminal *terminal) {
  /* No more at once than a pipe that poll calls ready takes without blocking. */
  int is_shown = !terminal->output.got || drain(&terminal->shown, terminal->output.fd, PIPE_BUF);
  int is_typed = !terminal->input.got || type(terminal);
  if (!is_typed) end_input(terminal);
  if (is_shown) return;
  empty(&terminal->shown);
  hang_up(terminal);
}

void terminal_relay(struct terminal *terminal) {
  if (terminal->master.got) relay_master(terminal);
  if (!terminal->input.got && !terminal->output.got) return;
  bound_calls(terminal->timer, CALL_NS);
  relay_caller(terminal);
  bound_calls(terminal->timer, 0);
}

int terminal_is_pending(const struct terminal *terminal) {
  struct pollfd printed = {terminal->master.fd, POLLIN, 0};
  return left_in(&terminal->shown) > 0 || (terminal->master.fd >= 0 && poll(&printed, 1, 0) > 0 && (printed.revents & POLLIN));
}

void terminal_finish(struct terminal *terminal) {
  struct termios *before = &terminal->before;
  hang_up(terminal);
  empty(&terminal->shown);
  if (terminal->raw >= 0) tcsetattr(terminal->raw, TCSANOW, before);
  terminal->raw = -1;
}
