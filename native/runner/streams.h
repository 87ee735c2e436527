/*
 * The caller's streams as they were before a command had them. The command works on the same open files, so what it switches there
 * stays: echo off, O_NONBLOCK, exclusive use of the terminal. A shell of a person would be blind or end.
 */
#pragma once

#include <sys/types.h>
#include <termios.h>

struct stream_state {
  int flags;        /* F_GETFL; -1 = not open */
  int is_terminal;
  int is_exclusive;
  struct termios terminal;
};

struct streams {
  pid_t starter; /* our own Node or client, whose other programs leave the terminal alone; 0 = the caller has started us */
  struct stream_state of[3];
};

/* Opens /dev/null in the place of each that the caller has closed, or a later descriptor would become the command's. -1 with errno. */
int streams_fill(void);
/* Notes what descriptors 0 to 2 are like. */
void streams_note(struct streams *streams);
/*
 * Puts back what was changed. Not while another program of the caller's job runs (`llm-do exec ... | less`): it may have changed it,
 * and puts it back itself; and no terminal that belongs to another job by now.
 */
void streams_restore(const struct streams *streams);
