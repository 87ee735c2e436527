/* Small steps with descriptors and directories that most programs need. */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes a descriptor, where there is one, and returns `done`: errno stays that of what has failed before. */
int close_with(int fd, int done);

/* The names in a directory, in any order, without . and .. The descriptor stays the caller's, and where it is. NULL with errno. */
DIR *entries_at(int directory, const char *path);
static inline DIR *entries_open(int directory) { return entries_at(directory, "."); }
/* NULL at the end, and where it cannot be read. */
const char *entries_next(DIR *entries);
/* Returns `done`, or -1 with errno where that is 0 and a name could not be read: it comes right behind the last entries_next. */
int entries_close(DIR *entries, int done);

/* Moves it to one from `lowest` on, which exec closes. -1 stays, and with errno: it is closed. */
int fd_above(int fd, int lowest);
/* Where a descriptor is found by a path: fd_path(fd).text, in the expression that needs it. */
struct fd_path {
  char text[32];
};
struct fd_path fd_path(int fd);

/* Reads once: a file of the kernel's file systems comes as a whole. The text ends with NUL, also where -1 is returned, with errno. */
ssize_t read_small(int directory, const char *path, char *text, size_t room);
/* As many bytes as go; it waits for room also where another program has made the stream one that does not. Fewer than `size`: errno. */
size_t write_most(int fd, const char *bytes, size_t size);
/* All bytes. 0, or -1 with errno. */
int write_all(int fd, const char *bytes, size_t size);
