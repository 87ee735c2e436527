/* The caller's side of --tty: the caller's terminal in raw mode, connected with the master of the sandbox's own one. */
#ifndef LLM_DO_TERMINAL_H
#define LLM_DO_TERMINAL_H

#include <poll.h>
#include <termios.h>

struct terminal {
  int master;  /* -1 while there is none */
  int input;   /* caller's stdin, -1 after its end */
  int output;  /* caller's stdout */
  int raw;     /* the caller's terminal must be restored */
  struct termios before;
};

/* Takes the master into use: size, raw mode. */
void terminal_connect(struct terminal *terminal, int master, int input, int output);
/* Copies the caller's window size to the sandbox; call at SIGWINCH. */
void terminal_resize(const struct terminal *terminal);
/* What to poll for: fills in two entries. */
void terminal_watch(const struct terminal *terminal, struct pollfd watched[2]);
/* Moves what poll found; watched as filled in by terminal_watch. */
void terminal_relay(struct terminal *terminal, const struct pollfd watched[2]);
/* Prints what is left, restores the caller's terminal. */
void terminal_finish(struct terminal *terminal);

#endif
