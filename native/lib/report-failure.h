/* The one way in which the stager and init give up: a report on the control socket, then status 125. Nothing is printed. */
#pragma once

#include "lib/clock.h"
#include "lib/init-protocol.h"

#include <stddef.h>

/* Reports go to this descriptor from now on. */
void fail_through(int control);
/* The step is named `stage: ...` or `init: ...`; the error is errno. */
_Noreturn void fail(const char *step, const char *path);
/* The same with an error that is not errno; 0 = no system call failed, the step says it all. */
_Noreturn void fail_with(int error, const char *step, const char *path);

/* Sends a report and descriptors with it. Returns 0, or -1 when launch is gone. */
int report_send(int control, const struct report *report, const int *fds, int count);

/* Copies as much of `text` as fits, always ended by NUL. */
void copy_text(char *to, size_t room, const char *text);
