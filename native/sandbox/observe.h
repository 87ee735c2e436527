/* A second filter of system calls, which lets everything through, and reports some calls to a listener first (seccomp_unotify(2)). */
#pragma once

/* Installs it on the calling process, which has no_new_privs; `looks`: calls that only ask about a file are reported, too. Each of them waits
 * for an answer from now on, or fails with ENOSYS when no process holds the listener. Returns the listener, or -1 with errno. */
int observe_calls(int looks);
