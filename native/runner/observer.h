/*
 * The observer: a process of a run with `observe`, which records what the sandbox refuses its command.
 *
 * Theory of operation. The command's process installs a filter that reports some calls to a listener (sandbox/observe.h), and sends the
 * listener to launch, which starts the observer and closes it: no other process has one. For each call the observer reads the path, checks
 * where it leads inside, records what the walls will refuse, and always lets the call continue, so it decides nothing, and a change of a
 * path between two looks is a wrong line in a report. Most names that are missing inside are missing everywhere: those that the host may
 * have are kept, and the host is asked only when the run is over, so the command learns nothing of it by measuring time.
 *
 * It is another process, because its input is hostile and its questions may hang (a network file system): launch keeps its deadlines
 * whatever it does. It has the right to look and nothing else. When it ends before its time, observed calls fail with ENOSYS.
 */
#pragma once

#include "lib/launch-file.h"
#include "lib/observer-protocol.h"

#include <sys/types.h>

struct observer {
  pid_t pid;  /* 0 = there is none */
  int report; /* our end of its socket: -1 without */
  struct observed_report *result; /* NULL until the end; never freed */
};
#define OBSERVER_NONE {.pid = 0, .report = -1}

/* `listener` becomes the observer's alone. Returns 0, or -1 with errno. */
int observer_start(struct observer *observer, int listener, const struct launchfile *file);

/* Nothing of the command is left: asks for the report, and ends it. May be called more than once. */
void observer_finish(struct observer *observer);
