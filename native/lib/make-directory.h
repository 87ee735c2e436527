/* Makes directories below others that another process may be changing. */
#pragma once

/*
 * Works like `mkdir -p`, by descriptors: each step is opened in the one before, and none is a symbolic link, so nothing is made where
 * a link leads that was put in the way meanwhile. New directories have mode 0777 less the umask and belong to the caller; existing
 * ones stay as they are. `path` is absolute and canonical.
 * Returns an O_PATH descriptor; -1 with errno, and the length of the part of `path` that failed in `*failed`.
 */
int make_directory_path(const char *path, int *failed);
