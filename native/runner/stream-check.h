/* Checks the standard streams of a command. */
#pragma once

/* Returns 0, or -1 with errno for what would show the command more than a stream: EISDIR for a directory, through which it
 * reaches the host's files around every mount, EBADF for a descriptor that is closed or was opened with O_PATH. */
int stream_check(int fd);

/* `stdin`, `stdout` or `stderr`. */
const char *stream_name(int which);
