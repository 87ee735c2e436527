/*
 * The socket by which the user of a living sandbox has another command run in it: `in`, in the directory that `serve` of its launch file
 * names and that only this user can enter. A request is one datagram: struct request with `exec_in` set, and EXEC_IN_DESCRIPTORS
 * descriptors (lib/init-protocol.h). The variables of its command block are added to those of the run.
 */
#pragma once

#define EXEC_IN_SOCKET "in"
