/*
 * The observer's questions about a call of a hostile process: where its path leads inside, and at the end of the run whether the host has
 * the paths that were missing. Nothing is opened but by O_PATH, so no FIFO, device or lock is touched, and nothing is decided by it: between
 * this look and the kernel's own one a file can change, and then a line of a report is wrong.
 */
#pragma once

#include "lib/observer-protocol.h"

#include <stddef.h>
#include <sys/types.h>

/* Bytes of its memory. Returns how many there were up to the first that cannot be read, or -1 with errno. */
ssize_t process_read(pid_t pid, uint64_t address, void *to, size_t size);
/* A text with its NUL. Returns 0, or -1 with errno, ENAMETOOLONG where it has none in `room` bytes. */
int process_read_text(pid_t pid, uint64_t address, char *to, size_t room);

struct place {
  int fd;      /* O_PATH: the file, or the nearest directory on its way that is there */
  mode_t mode; /* of what `fd` is */
  int missing; /* how many names of its path are not there; 0 = the file is */
  char path[OBSERVED_PATH_MAX]; /* inside, without links */
};

/* `directory`: descriptor of the process, or AT_FDCWD. Returns 0, and place->fd is the caller's; -1 = there is nothing to say about it. */
int place_find(struct place *place, pid_t pid, int directory, const char *path, int follows);
/* It can be written, but for a mount that is read-only. */
int place_is_read_only(const struct place *place);
/* It is missing in a directory that the sandbox has made, so the host may have it. Elsewhere inside and host show the same. */
int place_may_be_hidden(const struct place *place);

/* Whether the host has it, for who called. `root`: the host's. Never causes a mount of an automounter. */
int host_has(int root, const char *path);
