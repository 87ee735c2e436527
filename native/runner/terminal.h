/*
 * The caller's side of --tty: the caller's terminal in raw mode, connected with the master of the sandbox's own one.
 *
 * Theory of operation: launch has one loop for everything, so nothing here may block: neither a command that reads nothing nor
 * a reader that does not read. The master is ours alone and does not block (O_NONBLOCK). The caller's streams are shared with
 * other processes, which would see O_NONBLOCK too; there each call follows a poll, and a timer interrupts it should it block
 * all the same (another process has taken what poll promised, or a terminal has room for less than is written). Each direction
 * has one buffer, filled only when it is empty.
 */
#pragma once

#include "lib/loop.h"

#include <stddef.h>
#include <termios.h>
#include <time.h>

struct channel {
  size_t at, end; /* what is still to be written */
  char *bytes;    /* NULL until there is a terminal */
};

struct terminal {
  struct source master; /* closed while there is none */
  struct source input;  /* caller's stdin, -1 after its end */
  struct source output; /* caller's stdout */
  int is_within_line; /* what was typed last ends no line */
  int raw;    /* descriptor whose terminal must be restored, -1 = none */
  struct termios before;
  timer_t timer;
  struct channel typed, shown; /* to the command, to the caller */
};

/* No terminal yet. */
void terminal_none(struct terminal *terminal);
/* Takes the master into use: size, raw mode. */
void terminal_connect(struct terminal *terminal, int master, int input, int output);
/* Copies the caller's window size to the sandbox; call at SIGWINCH. */
void terminal_resize(const struct terminal *terminal);
/* Before a wait. */
void terminal_watch(struct terminal *terminal);
/* After it: moves what can be moved. Takes 20 ms at most. */
void terminal_relay(struct terminal *terminal);
/* Whether the caller has yet to see something, once everything inside is gone. */
int terminal_is_pending(const struct terminal *terminal);
/* Drops what is left and restores the caller's terminal; more than once does no harm. */
void terminal_finish(struct terminal *terminal);
