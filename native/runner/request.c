/*
 * The client of a run: it captures the streams, or brings the command to a warm sandbox (runner/line.h). A client of a warm
 * sandbox may go another way as long as it has not been told that its command was taken, and after that only when it has read the gate
 * itself; so a command is never run twice.
 */
#include "runner/run.h"

#include "lib/any-directory.h"
#include "lib/fd-message.h"
#include "lib/pages.h"
#include "lib/text.h"
#include "sandbox/root-fs.h"
#include "runner/stream-check.h"

#include <stddef.h>
#include <sys/wait.h>

int run_has_client(const struct run *run) { return run->line.taken; }

void run_make_streams(struct run *run) {
  errno = EINVAL;
  int with_input = strcmp(run->caller.stream_mode, "all") == 0;
  if (strcmp(run->caller.stream_mode, "own") == 0) return;
  if (!with_input && strcmp(run->caller.stream_mode, "output") != 0) run_refuse(run, "launch: usage", "--streams");
  if (line_make_streams(&run->line, with_input, run->stdio.own) < 0) run_refuse(run, "launch: pipe", "");
}

void run_prepare_warm(struct run *run) {
  if (!run->warm.is_on) return;
  errno = ESTALE;
  if (!is_fresh(&run->file)) run_refuse(run, "launch: plan", ""); /* what it builds would serve no client */
  run->warm.is_blank = launchfile_has_slots(&run->file);
  if (line_prepare(&run->line, run->warm.directory, run->id, &run->file, run->init) < 0) run_refuse(run, "launch: warm", run->id);
}

/* Most commands are over by then, and neither their words in the record nor a keeper that wakes up takes the processor from them. */
#define DEFERRED_NS (5 * MS)

static void notify_keeper(const struct run *run, char what) {
  if (run->caller.keeper.fd >= 0) (void)!write(run->caller.keeper.fd, &what, 1);
}

/* Most words of a command that the record of its run needs. */
#define WORDS_SHOWN 64

static char *words[WORDS_SHOWN + 1];

/* The command of a block, as far as people see it. init checks the block; what is odd is only not recorded. */
static char **words_of(char *block, size_t size) {
  const char *at = block, *end = block + size, *word;
  uint64_t count = 0;
  if (take_number(&at, end, size, &count) < 0 || !take_word(&at, end) || !take_word(&at, end)) return words;
  for (size_t i = 0; i < count && i < WORDS_SHOWN && (word = take_word(&at, end)); i++) words[i] = (char *)(uintptr_t)word;
  return words;
}

/* bin/llm-do has checked before it came here; this is for any other client. */
static int take_streams(struct run *run, int *streams) {
  int which = 0, given[] = {streams[0], streams[1], streams[2]};
  for (int i = 0; i < 3; i++)
    if (stream_check(streams[i]) < 0) return run_record_failure(run, errno, "launch: stream", stream_name(i)), -1;
  if (stream_files_replace(&run->stdio.files, streams, &which) < 0) return run_record_failure(run, errno, "launch: carry stream", stream_name(which)), -1;
  for (int i = 0; i < 3; i++)
    if (streams[i] != given[i]) close(given[i]);
  return 0;
}

static struct handover handover;

/* The command and its streams, for the process that waits: it does what is left to do, and then waits for the word to start. */
static int hand_over(struct run *run, const char *block, size_t size) {
  int fds[5] = {-1, -1, -1}, count = 3, gate = line_gate(&run->line), done = line_streams(&run->line, fds);
  handover.is_long = size > sizeof handover.block;
  handover.has_gate = gate >= 0;
  if (handover.is_long) fds[count++] = run_sealed(run, block, size, "command"), size = 0;
  if (handover.has_gate) fds[count++] = gate;
  memcpy(handover.block, block, size);
  if (done == 0) done = take_streams(run, fds);
  if (done == 0) done = message_send(run->warm.waiting, &handover, offsetof(struct handover, block) + size, fds, count);
  if (done < 0) run_record_failure(run, errno, "launch: hand over", "");
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
  return done;
}

static int signal_start(const struct run *run) { return message_send(run->warm.waiting, "", 1, NULL, 0); }

/* A host program that makes a protected name in between is not the command. */
static int is_guarded(const struct run *run) { return run->warm.is_blank && now_ns() - run->warm.guarded_ns < LOOKS_HOLD_NS; }

/* The covers were made with the tree: the client goes the cold way where they would be others now. The watches come first, so
 * that what is made after the look is seen by them. */
static int guard_late(struct run *run) {
  if (!run->warm.is_blank) guard_watch(&run->guard, now_ns());
  if (is_guarded(run) || guard_is_fresh(&run->guard, &run->file)) return 0;
  return run_record_failure(run, ESTALE, "launch: protect", ""), -1;
}

static int is_served(struct run *run) {
  looks_were_made(&run->warm.looks.own, &run->file, line_looked(&run->line));
  return serves(&run->file, &run->line.plan, &run->warm.looks);
}

/* The stager hears of them first: it takes longer than all the rest. */
int run_fill(struct run *run) {
  static struct places places;
  static char bytes[PLACES_BYTES_MAX];
  struct launchfile filled;
  size_t size = line_places(&run->line, &places) == 0 ? places_write(&places, bytes) : 0;
  if (size == 0 || message_send(run->warm.zones, bytes, size, NULL, 0) < 0 || places_fill(&places, &run->file, &filled) < 0)
    return run_record_failure(run, errno, "launch: directories", ""), -1;
  run->file = filled;
  run->warm.guarded_ns = now_ns();
  return run_guard(run);
}

int run_take_command(struct run *run) {
  size_t size;
  char *block = line_command(&run->line, &size);
  run->outcome.begun_ns = now_ns();
  run->command.words = words_of(block, size);
  return hand_over(run, block, size) < 0 ? line_refuse(&run->line), -1 : 0;
}

/* Everything before the word to start; -1 = there will be no start, and `run` says why. */
static int make_ready(struct run *run) {
  if (run_begin_layer(run) < 0) return run_record_failure(run, errno, "launch: record of the layer", ""), -1;
  if (!is_served(run)) return run_record_failure(run, ESTALE, "launch: guards", ""), -1;
  return guard_late(run) < 0 ? -1 : run_measure_zones(run);
}

/* The client hears of it first: before FRAME_TAKEN it may still take another way. */
int run_begin_command(struct run *run) {
  if (make_ready(run) < 0) return line_refuse(&run->line), -1;
  if (line_accept(&run->line) < 0) return 0;
  run->caller.is_kept = 0; /* the client's connection takes the place of the keeper's */
  return signal_start(run) == 0 ? 1 : (run_record_failure(run, errno, "launch: start", ""), -1);
}

void run_leave_pool(struct run *run) {
  for (int i = 0; i < 2; i++) close(run->warm.namespaces[i]); /* held, they would outlive the sandbox */
  close(run->warm.waiting);
  run->warm.deferred_ns = now_ns() + DEFERRED_NS;
}

void run_do_deferred(struct run *run) {
  if (!run->warm.deferred_ns) return;
  run->warm.deferred_ns = 0;
  /* The command has begun: a refusal would send the client the cold way, and run it twice. All that is missing where the record
   * cannot be written are the words of the command in `llm-do ps`; what is to be removed has been there from the beginning. */
  if (!run->caller.has_status) (void)run_put_record(run);
  notify_keeper(run, WARM_IS_TAKEN);
}

int run_on_ready(struct run *run, const int *fds, int count) {
  if (run->stop.has_begun || count != READY_DESCRIPTORS) return 0;
  memcpy(run->warm.namespaces, fds, sizeof run->warm.namespaces);
  run->warm.waiting = fds[2];
  use_page(words), use_page(&handover);
  if (line_show(&run->line) == 0) return notify_keeper(run, WARM_IS_READY), 0;
  return run_record_failure(run, errno, "launch: show socket", run->id), -1;
}

static int look_at_more(struct looks *looks, const struct launchfile *plan) {
  if (!looks_are_left(looks, plan)) return 0;
  look_ahead(looks, plan);
  return 1;
}

/* Returns 0 when there is nothing left to look at. */
static int look_for_client(struct run *run) {
  const struct line *line = &run->line;
  if (line_is_announced(line) && look_at_more(&run->warm.looks.own, &run->file)) return 1;
  return line_has_guards(line) && look_at_more(&run->warm.looks.wanted, &line->plan);
}

/* A client says that it comes before it has its command: until then there is time for what it will ask. */
static enum line_event look_until_command(struct run *run) {
  enum line_event event = LINE_NOTHING;
  while (event == LINE_NOTHING && look_for_client(run)) event = line_read(&run->line);
  return event;
}

enum line_event run_relay(struct run *run) {
  enum line_event event = line_relay(&run->line);
  return event == LINE_NOTHING ? look_until_command(run) : event;
}

void run_send_status(struct run *run) {
  size_t size;
  const char *line = status_line(&run->outcome, &size);
  run->caller.has_status = 1;
  /* init says that it starts the command before it does: without that word another way is open to the client of a pool. */
  if (run->warm.is_on && !run->outcome.started_ns && run->outcome.cause == CAUSE_SETUP) return line_refuse(&run->line);
  if (!line) return; /* the client sees the end of the connection and says what it knows */
  line_reply(&run->line, ending_of(&run->outcome).exit_status, line, size);
}

uint64_t run_watch_line(void *of) {
  struct run *run = of;
  return line_watch(&run->line), 0;
}

static const struct part LINE_ALONE[] = {{run_watch_line, NULL}, {NULL, NULL}};

/* Sends the rest to a client that has not read it yet, after everything else is over. */
static void hand_over_the_rest(struct run *run) {
  while (!run->caller.has_status || line_is_busy(&run->line)) {
    if (!run->caller.has_status && line_is_drained(&run->line)) run_send_status(run);
    if (!line_is_busy(&run->line)) continue;
    if (loop_turn(LINE_ALONE, run) < 0) return;
    line_relay(&run->line);
  }
}

/* The streams that came with the command become our own 0-2: a terminal's bytes go there, too. */
static void take_given_streams(struct run *run) {
  int given[3];
  if (!line_take_given(&run->line, given)) return;
  for (int i = 0; i < 3; i++) {
    if (dup2(given[i], i) < 0) run_refuse(run, "launch: stream", stream_name(i));
    close(given[i]);
  }
}

static void await(struct run *run, enum line_event wanted) {
  for (enum line_event event = LINE_NOTHING; event != wanted;) {
    if (loop_turn(LINE_ALONE, run) < 0) run_refuse(run, "launch: poll", "");
    event = line_relay(&run->line);
    if (event == LINE_GONE) _exit(EXIT_SETUP);
  }
}

void run_await_plan(struct run *run) {
  const char *problem = "";
  await(run, LINE_PLAN);
  const char *mode = line_take_plan(&run->line, &run->file, &problem);
  errno = EINVAL;
  if (!mode || strcmp(mode, "own") == 0) run_refuse(run, "launch: launch file", problem);
  run->warm.is_on = strcmp(mode, "warm") == 0;
  if (run->warm.is_on) return line_await_command(&run->line);
  run->caller.stream_mode = mode;
}

/* Nothing has been made yet. A plan whose files have changed is refused by the frame that says so, and not by an outcome. */
void run_await_command(struct run *run) {
  await(run, LINE_RUN);
  run->command.block = line_command(&run->line, &run->command.size);
  run->command.words = words_of(run->command.block, run->command.size);
  take_given_streams(run);
  if (is_served(run) && (!run->caller.is_forked || line_accept(&run->line) == 0)) return;
  run->caller.has_status = 1;
  line_refuse(&run->line);
  run_finish_client(run);
  _exit(EXIT_SETUP);
}

void run_finish_client(struct run *run) {
  run_drop_stdio(run); /* refused before they were handed over: they would never be drained */
  hand_over_the_rest(run);
  line_linger(&run->line);
}
