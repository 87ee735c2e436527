/*
 * Signals that are the command's. A program of ours that stands between a caller and a command neither ends nor stops by one: it hands the
 * signal on. src/os/passed-signals.ts has those of them that Node has names for. SIGINT, SIGTERM and SIGQUIT end a run; the others
 * tell of a fault of the process itself or keep their meaning (job control, limits).
 */
#pragma once

#include <signal.h>

void add_passed_signals(sigset_t *set);
int is_passed_signal(int signal);
