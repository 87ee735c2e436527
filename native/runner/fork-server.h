/*
 * A fork server: a process that starts runs for another one, its owner, for which a fork is dear (a node of 100 MB copies its page tables,
 * 2 ms for each child). The owner connects once for each run and speaks frames (lib/frames.h): the connection is to the run what the socket of
 * a launch of its own would be.
 *
 * Each run is a process of its own from the moment its connection is accepted; the server reads nothing and holds nothing of it, so no run
 * can reach another. What a process inherits, a run has from the server: the owner starts a new one where its own attributes have changed. The
 * server ends with its owner; runs end with their connections, whatever becomes of the server.
 *
 * A run begins outside of all walls, and its plan says what they are. So the server takes plans from its parent only, and its socket has no name once
 * it listens: the way to it is a descriptor of the server in /proc, which only processes that may debug the server can follow.
 */
#pragma once

/*
 * Makes its socket in `directory`, tells the owner by one byte on RUN_FD, and serves until the owner's end of that is closed. The owner connects to
 * FORK_SERVER_FD of this process. Returns in a child only, with the connection of one run.
 */
int fork_server(const char *directory);
