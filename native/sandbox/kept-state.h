/*
 * The state that `exec --in NAME --keep-state` carries from one command to the next: the directory, the umask, exported variables, and where bash runs
 * the line also functions, aliases and options of the shell.
 *
 * Theory of operation. The state never leaves the sandbox, and no file holds it. init keeps the bytes. The attendant of a command puts directory
 * and variables into the command before it is forked. A shell (`sh -c LINE`, `bash -c LINE`) also gets a trap, by which it writes its state into a
 * pipe when it exits; the attendant reads the pipe, bounded. Only if the command exited, we did not end it, and the state is whole, the
 * attendant passes it to init. By then everything that the command started is dead, so nothing can change a state later. Of two commands at
 * once the state of the one that ends last counts.
 *
 * The bytes are made by code inside, so it may be anything: the part that we read is checked, and only bash in the sandbox
 * reads the rest.
 */
#pragma once

#include "lib/init-protocol.h"
#include "sandbox/command.h"

#include <stddef.h>

/* Above the descriptors that scripts use, below those that bash takes on its own; in this order. */
enum { STATE_FD_OUT = 60, STATE_FD_START = 61, STATE_FD_SHELL = 62, STATE_FDS = 3 };

/* Descriptors for the child of an attendant, at these places, and the one that the attendant reads; -1 = none. */
struct kept_state {
  int places[STATE_FDS];
  int in;
  char *bytes; /* what was read */
  size_t size;
  int is_shell, has_functions; /* bash has them */
};

#define KEPT_STATE_NONE {.places = {-1, -1, -1}, .in = -1}

/* By init, before it forks an attendant: takes what commands that have ended left. -1 where memory or descriptors are short. */
int kept_state_take(int is_reset);

/* By an attendant: changes the command into one that starts with the state. `own`: how many variables at the end of its environment come
 * with the command; they win over those of the state. Ends this process by fail() where that is not possible. */
void kept_state_apply(struct command *command, uint64_t own, struct kept_state *state);

/* Reads some of what there is: a writer that never stops must not keep the attendant from the rest. */
void kept_state_read(struct kept_state *state);

/* After the end of everything that the command started. Returns one of STATE_*. */
int kept_state_pass(struct kept_state *state, int has_ended_well);
