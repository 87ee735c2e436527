/* A run, as launch sees it from its arguments to its result: what it consists of, and below what each file does for it. */
#pragma once

#include "lib/cgroup.h"
#include "lib/init-protocol.h"
#include "lib/report-failure.h"
#include "lib/guard.h"
#include "lib/syscalls.h"
#include "runner/freshness.h"
#include "runner/launch.h"
#include "runner/layer-size.h"
#include "runner/net-helper.h"
#include "runner/observer.h"
#include "lib/fd-message.h"
#include "lib/run-record.h"
#include "lib/status.h"
#include "runner/stream-files.h"
#include "runner/streams.h"
#include "runner/sweeper.h"
#include "runner/terminal.h"
#include "runner/line.h"
#include "runner/watchdog.h"
#include "runner/zone-size.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000ull

/* The command, and its environment. */
struct run_command {
  char **words; /* of a block only what its record shows */
  char *block;  /* both as for init; NULL = those of the caller in this process, or none yet */
  size_t size;
};

/* The caller of the run. */
struct run_caller {
  const struct launch_call *call; /* in this process; NULL = our own program */
  const char *stream_mode; /* `own`: the command has ours, or those that come with it; `output`, `all`: frames; NULL = not said, or a warm sandbox */
  mode_t umask;   /* for a command that comes from it */
  struct source signals;
  struct source parent; /* pidfd of what started the client, in whose process we are */
  struct source keeper; /* the socket of a warm sandbox's keeper */
  int is_kept;    /* the end of the keeper is ours */
  int is_forked;  /* for a connection: the caller hears when its command is taken */
  int has_status; /* or will not get any */
};

struct run_stdio {
  int own[3];               /* the command's ends */
  struct stream_files files;
  struct streams before;    /* the caller's, as they were */
};

/* Made on the host, and removed again (runner/host-state.c). */
struct run_host {
  int records, record;
  int cgroup_parent, cgroup;
  char cgroup_name[RUN_ID_MAX + sizeof CGROUP_PREFIX];
  int is_swept;
  pid_t sweeper; /* 0 = there is none */
  struct source guard; /* its events, while the command runs */
};

struct run_layer {
  int fd; /* of the directory of copy-on-write zones, locked; -1 without */
  const char *id; /* its name: that of the run, or of the earlier run that this one continues */
  struct layer_size size;
};

/* The process whose end is that of the sandbox. */
struct run_engine {
  struct source control; /* our end */
  struct source errors;  /* what it prints */
  pid_t stager, pid; /* the same until the stager has named init */
  int is_gone; /* reaped: its pid may belong to another process */
};

/* A sandbox that waits for its command. */
struct run_warm {
  int is_on;             /* 0 = an ordinary run */
  const char *directory; /* of the pool; NULL = it has its client already */
  struct looks_ahead looks;
  uint64_t deferred_ns;  /* when run_do_deferred is due; 0 = nothing is owed */
  int namespaces[2];     /* user and mount namespace, while it waits */
  int waiting;           /* the socket of its process that waits for the command */
  int is_blank;          /* it was built from a plan with slots, and has its directories by the command */
  int zones;             /* blank: where the stager hears of them */
  int is_mounted;        /* blank: they are there */
  int has_command;       /* which waits for that */
  uint64_t guarded_ns;   /* blank: when it was looked through them */
};

struct run_stop {
  int has_begun;
  uint64_t begun_ns;
  uint64_t kill_ns; /* 0 = not yet */
  uint64_t rest_ns; /* what was printed last is shown until then */
  uint64_t early_signals; /* for the command, from before its start: bit N-1 = signal N */
  int has_asked; /* init to kill, where nothing ends with it */
};

static inline void note_early_signal(struct run_stop *stop, int signal) { stop->early_signals |= 1ull << (signal - 1); }

struct run_limits {
  uint64_t deadline_ns; /* a length until the command has started, then a point in time; 0 = none */
  uint64_t cpu_us;
  uint64_t memory;      /* of the watchdog, bytes */
  int has_watchdog;
  int scratch_count;
  struct watchdog watchdog;
  int scratch[MESSAGE_DESCRIPTORS_MAX];
  struct zone_size zones;
};

/* Times ending in _ns are CLOCK_MONOTONIC. What every run needs comes first, and what is large last (lib/pages.h). */
struct run {
  struct launchfile file;
  char id[RUN_ID_MAX + 1];
  __attribute__((noreturn)) void (*finish)(struct run *run); /* runner/conclude.c, for a part that refuses */
  struct run_command command;
  struct run_caller caller;
  struct run_stdio stdio;
  struct run_host host;
  struct run_layer layer;
  struct run_engine engine;
  struct net_helper net; /* of a restricted network, or for the names that are asked for without one */
  struct observer observer;
  struct source exec_in; /* where other commands are asked for */
  struct terminal terminal;
  struct line line;
  struct run_warm warm;
  struct run_stop stop;
  struct outcome outcome;
  struct run_limits limits;
  struct guard guard;
  char init[PATH_MAX];
};

/* ---- the path (runner/launch.c) ---- */

/* The whole of `run` must be zero. */
void run_begin(struct run *run);
/* Before anything is made: what comes from the caller's side, and not from a plan. */
void run_prepare_process(struct run *run);
/* With the launch file and the command read. */
_Noreturn void run_carry_out(struct run *run);

/* ---- what is made on the host, and removed again (runner/host-state.c) ----
 * Here and below an `int` is 0, or -1 where a failure was noted that must end the run, unless something else is said. */

void run_open_record(struct run *run);
/* -1 with errno: it is not written. */
int run_put_record(const struct run *run);
void run_write_record(struct run *run);
void run_name_group(struct run *run);
void run_make_group(struct run *run);
/* The stager has gone, and with it what only it needed. */
int run_narrow_group(struct run *run);
/* Makes what keeps the changes of copy-on-write zones (runner/layer.c). That of a warm sandbox begins with its command: -1 with errno. */
void run_make_layer(struct run *run);
int run_begin_layer(const struct run *run);
/* Once the command has started. */
int run_limit_layer(struct run *run);
/* Nothing of the command is left: changes stay, are reported, and may be applied. */
void run_settle_layer(struct run *run);
/* Removes a layer without changes. */
void run_release_layer(struct run *run);
/* Before the command: adds up what writable zones take. Once nothing of it is left: again. */
int run_measure_zones(struct run *run);
void run_settle_zones(struct run *run);
/* While the stager works: finds what is to be covered and what to be watched in the writable zones, and tells it. */
int run_guard(struct run *run);
/* For the guard (guard_hide of lib/guard.h; runner/hide.c). Where it fails, the failure is recorded. */
int run_hide(void *of, const struct guard_zone *zone, const char *path, mode_t type);
/* Once there is an engine to end: starts the process that sweeps should we be killed. */
int run_start_sweeper(struct run *run);
/* Nothing is left inside but init: sets aside what was made in spite of its protection. */
void run_sweep(struct run *run);
void run_release(struct run *run);

/* ---- the stager (runner/start.c) ---- */

/* A sealed memfd with these bytes, at offset 0. */
int run_sealed(struct run *run, const char *bytes, size_t size, const char *what);
void run_start(struct run *run);
/* Closes the command's ends of its streams on our side. */
void run_drop_stdio(struct run *run);
/* A sandbox without network has asked for a name. */
void run_serve_names(struct run *run);

/* ---- captured output, and the command of a warm run (runner/request.c) ---- */

int run_has_client(const struct run *run);
/* Makes the pipes of framed streams. */
void run_make_streams(struct run *run);
/* For a run of a connection: waits for the plan, and how the streams go. */
void run_await_plan(struct run *run);
/* Waits for the command of a cold run. */
void run_await_command(struct run *run);
void run_prepare_warm(struct run *run);
int run_on_ready(struct run *run, const int *fds, int count);
/* For a loop that watches the line: before a wait, and after it. */
uint64_t run_watch_line(void *run);
enum line_event run_relay(struct run *run);
/* After LINE_PLACES in a blank sandbox: -1 = it cannot have them. */
int run_fill(struct run *run);
/* After LINE_RUN in a warm sandbox: hands it over. -1 = it will not start. */
int run_take_command(struct run *run);
/* Then, in a blank sandbox when it has its directories. 1 = the command was told to start; 0 = its client has gone, -1 = it will not start. */
int run_begin_command(struct run *run);
void run_leave_pool(struct run *run);
/* Does the work that the start of a warm run has left for a quiet moment. */
void run_do_deferred(struct run *run);
void run_send_status(struct run *run);
void run_finish_client(struct run *run);

/* ---- other commands (runner/exec-in.c) ---- */

int run_serves(const struct run *run);
int run_open_exec_in(struct run *run);
void run_on_exec_in(struct run *run);

/* ---- until nothing is left (runner/watch.c) ---- */

/* Kills now. */
void run_kill(struct run *run);
/* Asks everything inside to end, and kills it after `grace_ms`; the first cause is the run's. */
void run_stop(struct run *run, enum cause cause, unsigned grace_ms);
void run_watch(struct run *run);

/* ---- what stands in the way (runner/failure.c) ---- */

/* Notes what stands in the way; the first failure explains the others. Once the command has started the cause is `lost`, before
 * that `setup`. */
void run_record_failure(struct run *run, int error, const char *step, const char *path);
void run_record_failure_as(struct run *run, enum cause cause, int error, const char *step, const char *path);
/* The noted failure was not the reason: the command had ended before. */
void run_forget_failure(struct run *run);
/* Blames errno, and ends. */
_Noreturn void run_refuse(struct run *run, const char *step, const char *path);

/* ---- the outcome (runner/conclude.c) ---- */

void run_conclude(struct run *run);
__attribute__((noreturn)) void run_finish(struct run *run);
