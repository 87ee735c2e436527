/*
 * What people read of a run that did not succeed: a program that is not there, a signal, the deadline, at a terminal any exit code. Node has left the words with the plan
 * (src/report/failure-messages.ts). An end of which more is to be said is node's.
 */
#pragma once

#include "client/result-template.h"

/* Writes the words of this end to `fd`. Returns the exit status, or -1 when node has to tell. */
int print_failure_message(const struct result *result, int fd);

/* What a person at a terminal reads of a command that has failed by itself; nothing elsewhere. */
void print_exit_message(const struct result *result, int fd);
