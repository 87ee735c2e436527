#include "runner/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
  terminal->master = terminal->input = terminal->output = terminal->raw = -1;
  terminal->is_within_line = 0;
  terminal->typed = terminal->shown = (struct channel){0, 0, NULL};
}

void terminal_resize(const struct terminal *terminal) {
  struct winsize size;
  if (terminal->master >= 0 && ioctl(terminal->output, TIOCGWINSZ, &size) == 0) ioctl(terminal->master, TIOCSWINSZ, &size);
}

static void hang_up(struct terminal *terminal) {
  if (terminal->master >= 0) close(terminal->master);
  terminal->master = -1;
  empty(&terminal->typed);
}

void terminal_connect(struct terminal *terminal, int master, int input, int output) {
  static char typed[TERMINAL_BUFFER], shown[TERMINAL_BUFFER];
  terminal->typed.bytes = typed;
  terminal->shown.bytes = shown;
  terminal->master = master;
  terminal->input = input;
  terminal->output = output;
  /* A master that blocks is worth no run: without it the command sees a hangup. */
  if (make_timer(&terminal->timer) < 0 || fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK) < 0) return hang_up(terminal);
  terminal_resize(terminal);
  if (tcgetattr(input, &terminal->before) < 0) return; /* a pipe: nothing to switch */
  struct termios raw = terminal->before;
  cfmakeraw(&raw);
  if (tcsetattr(input, TCSANOW, &raw) == 0) terminal->raw = input;
}

/* poll reports a hangup of descriptors that it is asked nothing of, too. */
static struct pollfd watch(int fd, int events) { return (struct pollfd){events ? fd : -1, (short)events, 0}; }

void terminal_watch(const struct terminal *terminal, struct pollfd *watched) {
  int is_typed = left_in(&terminal->typed) > 0, is_shown = left_in(&terminal->shown) > 0, is_there = terminal->master >= 0;
  watched[0] = watch(terminal->master, (is_shown ? 0 : POLLIN) | (is_typed ? POLLOUT : 0));
  watched[1] = watch(terminal->input, is_there && !is_typed ? POLLIN : 0);
  watched[2] = watch(terminal->output, is_shown ? POLLOUT : 0);
}

/* What a person types to end input; the program decides what it means. */
#define END_OF_TRANSMISSION 4

/* A terminal that gives its reader whole lines. */
static int is_in_line_mode(int master) {
  struct termios mode;
  return tcgetattr(master, &mode) == 0 && (mode.c_lflag & ICANON);
}

/* Within a line it only ends the line, without a newline: it takes a second one there. */
static void end_input(struct terminal *terminal) {
  terminal->input = -1;
  memset(terminal->typed.bytes, END_OF_TRANSMISSION, 2);
  terminal->typed.end = terminal->is_within_line && is_in_line_mode(terminal->master) ? 2 : 1;
}

static int type(struct terminal *terminal) {
  struct channel *typed = &terminal->typed;
  int is_open = fill(typed, terminal->input);
  if (typed->end > 0) terminal->is_within_line = !memchr("\n\r\4", typed->bytes[typed->end - 1], 3);
  return is_open;
}

static void relay_master(struct terminal *terminal, const struct pollfd *master) {
  if ((master->events & POLLIN) && (master->revents & (POLLIN | POLLHUP | POLLERR)) && !fill(&terminal->shown, terminal->master))
    return hang_up(terminal);
  if (!left_in(&terminal->typed)) return;
  /* With a hangup there are no more readers, and poll would return at once for ever. */
  if (master->revents & POLLHUP) empty(&terminal->typed);
  else if ((master->revents & POLLOUT) && !drain(&terminal->typed, terminal->master, TERMINAL_BUFFER)) hang_up(terminal);
}

static void relay_caller(struct terminal *terminal, const struct pollfd *input, const struct pollfd *output) {
  /* No more at once than a pipe that poll calls ready takes without blocking. */
  int is_shown = !output->revents || drain(&terminal->shown, terminal->output, PIPE_BUF);
  int is_typed = !input->revents || type(terminal);
  if (!is_typed) end_input(terminal);
  if (is_shown) return;
  empty(&terminal->shown);
  hang_up(terminal);
}

void terminal_relay(struct terminal *terminal, const struct pollfd *watched) {
  if (watched[0].revents) relay_master(terminal, &watched[0]);
  if (!watched[1].revents && !watched[2].revents) return;
  bound_calls(terminal->timer, CALL_NS);
  relay_caller(terminal, &watched[1], &watched[2]);
  bound_calls(terminal->timer, 0);
}

int terminal_is_pending(const struct terminal *terminal) {
  struct pollfd printed = {terminal->master, POLLIN, 0};
  return left_in(&terminal->shown) > 0 || (terminal->master >= 0 && poll(&printed, 1, 0) > 0 && (printed.revents & POLLIN));
}

void terminal_finish(struct terminal *terminal) {
  struct termios *before = &terminal->before;
  hang_up(terminal);
  empty(&terminal->shown);
  if (terminal->raw >= 0) tcsetattr(terminal->raw, TCSANOW, before);
  terminal->raw = -1;
}
