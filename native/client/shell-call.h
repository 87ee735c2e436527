/* The words of a shell that the caller did not name: `-c SCRIPT`, `-lc SCRIPT NAME ARG...` (src/launch-cache/shell-call.ts). */
#pragma once

/* The shell, then all words, which begin with its options; *text: the script. NULL where they name none, or where Node has to read them. */
char **shell_call(char **words, const char **text);
