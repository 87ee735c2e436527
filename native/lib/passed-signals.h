/*
 * Signals for the command. Programs between a caller and a command do not end or stop by them, but pass them on to the command.
 * src/os/passed-signals.ts has those of them that Node has names for. SIGINT, SIGTERM and SIGQUIT end a run; the others
 * tell of a fault of the process itself or keep their meaning (job control, limits).
 */
#pragma once

#include <signal.h>

void add_passed_signals(sigset_t *set);
int is_passed_signal(int signal);
