/*
 * Ends of a run that node has foreseen: a program that is not there, a signal, the deadline. What people read of each, and what its JSON has otherwise
 * than that of an exit, node has left with the plan (src/report/foreseen-ends.ts). An end of which more is to be said is node's.
 */
#pragma once

#include "client/result-template.h"

struct foreseen_end {
  const char *kind; /* of a V_ENDING entry */
  long long number;
  long long signal; /* that ended the command; 0 for none */
  int status;       /* the exit status */
};

/* An exit, of which only what stands in slots was foreseen. */
extern const struct foreseen_end EXIT;

/* Does its end need no more words than were foreseen? Sets result->end, to EXIT or to what becomes of `end`; otherwise node has to tell. */
int end_is_known(struct result *result, struct foreseen_end *end);

/* What stands in the slot of that name of `form` (message, result, record) at that end, where it is not the same as after an exit. 0 or -1. */
int filling_at(const struct launchfile *file, const struct foreseen_end *end, const char *form, const char *slot, struct entry *filling);

/* What stands between BEFORE and AFTER of a filling; `room` of `text` is enough for a number. */
const char *filling_mark(const struct entry *filling, const struct result *result, char *text, size_t room);

/* Writes what people read of result->end to `fd`. 0, or -1 where nothing was foreseen or written. */
int print_failure_message(const struct result *result, int fd);

/* What a person at a terminal reads of a command that has failed by itself; nothing elsewhere. */
void print_exit_message(const struct result *result, int fd);
