/* Small steps with descriptors and directories that most programs need. */
#pragma once

#include <dirent.h>
#include <stddef.h>

/* Closes a descriptor, where there is one, and returns `done`: errno stays that of what has failed before. */
int close_with(int fd, int done);

/* The names in a directory, in any order, without . and .. The descriptor stays the caller's, and where it is. NULL with errno. */
DIR *entries_open(int directory);
/* NULL at the end, and where it cannot be read. */
const char *entries_next(DIR *entries);
/* Returns `done`, or -1 with errno where that is 0 and a name could not be read: it comes right behind the last entries_next. */
int entries_close(DIR *entries, int done);

/* As many bytes as go; it waits for room also where another program has made the stream one that does not. Fewer than `size`: errno. */
size_t write_most(int fd, const char *bytes, size_t size);
/* All bytes. 0, or -1 with errno. */
int write_all(int fd, const char *bytes, size_t size);
