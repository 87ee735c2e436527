/*
 * The protocol of launch and init: the descriptors that init finds, and the reports that it sends.
 * Both programs are built together; a report of another size is refused.
 */
#pragma once

#include <stdint.h>

/* Descriptors of init. 0 and 1 are /dev/null, 2 is the engine's error pipe: bwrap's monitor keeps 0-2 open, and the
 * command's own streams must see end of file as soon as the command closes them. */
enum {
  INIT_LAUNCH_FILE = 3, /* sealed memfd, read and closed */
  INIT_COMMAND = 4,     /* sealed memfd: argc, envc, the umask, then the words, each ended by NUL; argc 0 = it is handed over later.
                            Another command in a living sandbox may name its directory behind them */
  INIT_CONTROL = 5,     /* SOCK_SEQPACKET: reports out, requests in; its end of file means that launch is gone */
  INIT_STDIN = 6,
  INIT_STDOUT = 7,
  INIT_STDERR = 8,
  INIT_NETWORK = 9, /* engine bwrap with a restricted network: the socket of its helper (lib/net-protocol.h); engine unshare without
                       network: the socket to which names are asked for (sandbox/network.h), if it could be made */
  INIT_ZONES = 10, /* of a blank sandbox, SOCK_SEQPACKET: its zones come by it from the stager, whose end is its end of file */
};

/* The kinds of report, in the order of a run. */
enum report_kind {
  REPORT_FAILED = 1,  /* the walls could not be finished: step, path, error */
  REPORT_STARTED = 2, /* about to run the command; carries the terminal's master by SCM_RIGHTS if there is one. Of a command that
                         came late only init gets it */
  REPORT_NO_EXEC = 3, /* execve failed: path, error */
  REPORT_ENDED = 4,   /* the command ended: wait_status, usage */
  REPORT_STAGED = 5,  /* from the stager: the tree stands; `pid` is init's if that is launch's own child (engine unshare), else 0;
                         carries descriptors on the tmpfs by SCM_RIGHTS where the memory watchdog wants them */
  REPORT_READY = 6,   /* a warm sandbox: everything is done but the command, which is now asked for; carries the user and the
                         mount namespace and the socket of the process that waits by SCM_RIGHTS */
  REPORT_NOT_STARTED = 7, /* of a warm sandbox: what waited has ended, and was no command; step, path, error if it said why */
  REPORT_OBSERVED = 8,    /* the command's process: the listener of its calls by SCM_RIGHTS (sandbox/observe.h) */
  REPORT_EXECUTED = 9,    /* of a sandbox that serves other commands: its own one has been executed */
  REPORT_MOUNTED = 10,    /* of a blank sandbox: its zones are there, and init has given up what it took to mount them */
};

#define READY_DESCRIPTORS 3

/* Whether the next command starts with what this shell left. */
enum { STATE_NONE, STATE_KEPT, STATE_UNCHANGED, STATE_TOO_LARGE };

/* Scratch file systems that a report can tell of: bits of `full`. */
#define FULL_MAX 32

struct report {
  uint32_t kind;
  int32_t error;
  int32_t wait_status;
  int32_t pid;
  uint32_t has_names;    /* REPORT_STARTED, REPORT_READY: the last descriptor is that socket */
  uint32_t killed;       /* processes that outlived the command and were killed */
  uint32_t full;         /* REPORT_ENDED of a command that failed: bit N = the N-th tmpfs entry of the launch file has no room left */
  uint32_t is_filtered;  /* REPORT_ENDED of a command of exec --in: a SIGSYS is the filter's doing */
  uint32_t state;        /* the same, of a shell whose state was asked for: STATE_* */
  uint64_t at_ns;        /* CLOCK_MONOTONIC */
  uint64_t started_ns;   /* REPORT_ENDED of a command that came late: when it began */
  uint64_t cpu_us;       /* user and system time of all that was reaped */
  uint64_t peak_bytes;   /* largest resident set of one process */
  char step[32];
  char path[256];        /* cut if longer */
};

#define HANDOVER_BYTES_MAX (32 << 10)

/* The message on the socket (SOCK_SEQPACKET) of the process that waits for a command: this struct, as far as it is filled, and descriptors
 * that the process keeps, the command's three streams and then the others that the struct names. Then a byte when it may start, as
 * soon as the gate can be read. The end of the socket means that there will be no command. */
struct handover {
  uint8_t is_long;  /* a sealed memfd holds the block */
  uint8_t has_gate; /* an eventfd */
  char block[HANDOVER_BYTES_MAX]; /* as in INIT_COMMAND */
};

/* A request to init: send `signal` to the command, or to everything inside, which is to end by it. Or, where `enter` is set, run another
 * command, with the descriptors that follow. What asked for that command (client/exec-in.c) holds the other end of the last one: from
 * there come requests with a signal for it, and its reports go there. The end of that socket ends the command. */
struct request {
  int32_t signal;
  int32_t everyone;
  int32_t exec_in; /* EXEC_IN_PLAIN, EXEC_IN_TERMINAL */
  int32_t state;   /* of exec_in: EXEC_IN_KEEPS, EXEC_IN_RESETS, 0 = the command neither gets nor leaves one (sandbox/kept-state.h) */
  uint32_t own;    /* of exec_in with a state: how many variables at the end are the command's own; launch counts them */
};

enum { EXEC_IN_PLAIN = 1, EXEC_IN_TERMINAL = 2 }; /* with a terminal of the sandbox's, whose master comes with REPORT_STARTED */

enum { EXEC_IN_KEEPS = 1, EXEC_IN_RESETS = 2 };

/* The command's three streams, a sealed memfd as INIT_COMMAND, and a SOCK_SEQPACKET socket. */
#define EXEC_IN_DESCRIPTORS 5

