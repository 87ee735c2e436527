/*
 * The process between init and a command that its user has brought into a living sandbox.
 *
 * Theory of operation. init forks it, so it has init's walls and, like init, cannot be traced or looked into by what runs in here. It
 * forks the command, and is the subreaper of all that the command starts: what is to end with the command it finds among its own
 * children. It answers to one socket, whose other end is with the program that asked (client/exec-in.c): signals come from there, the
 * end goes there, and when that end is closed everything below it is killed. With init it ends as everything here does.
 */
#pragma once

#include "sandbox/kept-state.h"

#include <sys/types.h>

struct attended {
  pid_t pid;
  int notes;  /* the command's process writes a report into it, or execve closes it */
  int master; /* of its terminal, -1 without */
  int is_filtered;
  struct kept_state state;
};

/* Puts the descriptors of a request (EXEC_IN_DESCRIPTORS) at INIT_COMMAND and INIT_STDIN..., and closes all others. Returns the socket,
 * to which failures are reported from now on. */
int exec_in_take(const int *given);
/* Until nothing of the command is left. */
_Noreturn void exec_in_wait(int session, struct attended *attended);
