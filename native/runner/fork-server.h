/*
 * A fork server: a process that starts runs for another one, its owner, for which a fork is dear (a node of 100 MB copies its page tables,
 * 2 ms for each child). The owner connects once for each run and sends frames (lib/frames.h): the connection serves the run as the socket
 * of a separate launch would. A run may also be a sandbox that waits for its command (runner/line.h).
 *
 * Each run is a separate process from the moment its connection is accepted; the server reads nothing and keeps nothing of it, so no run
 * can reach another. A run inherits the attributes of the server: the owner starts a new one where its own attributes have changed. The
 * server ends with its owner; runs end with their connections, whatever becomes of the server.
 *
 * A run begins outside of all walls, and its plan defines them. So the server takes plans from its parent only, and its socket has no name once
 * it listens: the way to it is a descriptor of the server in /proc, which only processes that may debug the server can follow.
 */
#pragma once

/*
 * Makes its socket in `directory`, tells the owner by one byte on RUN_FD, and serves until the owner's end of that is closed. The owner connects to
 * FORK_SERVER_FD of this process. Returns in a child only, with the connection of one run. In `own`, the directory above that of the runs, it finds
 * whether the zones of its owner are to be watched (runner/tree-watcher.h).
 */
int fork_server(const char *directory, const char *own);
