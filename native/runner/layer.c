/* The layer of a run with copy-on-write zones (lib/layer.h), made before the stager mounts it. */
#include "lib/layer.h"

#include "runner/host-mounts.h"
#include "runner/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>

/* An overlay shows what lies under a mount in its lower directory, and takes changes to it: nobody means that. */
static void refuse_mounts_below(struct run *run) {
  struct entry zone;
  char point[PATH_MAX];
  size_t position = 0;
  while (launchfile_next(&run->file, &position, &zone)) {
    if (!is_layered(&zone)) continue;
    int found = mounts_below(zone.word[0], point, sizeof point);
    if (found < 0) run_refuse(run, "launch: mounts below a copy-on-write zone", zone.word[0]);
    if (found > 0) errno = EXDEV, run_refuse(run, "launch: a mount below a copy-on-write zone", point);
  }
}

static int is_new(const struct entry *cow) { return strcmp(cow->word[1], "new") == 0; }

void run_make_layer(struct run *run) {
  struct entry cow;
  if (!launchfile_find(&run->file, V_COW, &cow)) return;
  refuse_mounts_below(run);
  run->layer_id = is_new(&cow) ? run->id : cow.word[1];
  run->layer = is_new(&cow) ? layer_create(cow.word[0], run->id) : layer_open(cow.word[0], run->layer_id);
  if (run->layer < 0) run_refuse(run, is_new(&cow) ? "launch: make layer" : "launch: open layer", cow.word[0]);
  if (!is_new(&cow)) {
    if (layer_resume(run->layer, &run->file) < 0) run_refuse(run, "launch: go on with layer", run->layer_id);
  } else if (!run->warm_directory && run_begin_layer(run) < 0) run_refuse(run, "launch: record of the layer", cow.word[0]);
}

int run_begin_layer(const struct run *run) { return run->layer < 0 ? 0 : layer_record(run->layer, &run->file); }

void run_limit_layer(struct run *run) {
  struct entry cow;
  uint64_t limit;
  if (run->layer < 0 || !launchfile_find(&run->file, V_COW, &cow)) return;
  if (parse_number(cow.word[2], UINT64_MAX, &limit) == 0) return layer_size_begin(&run->layer_size, run->layer, limit, now_ns());
  run_record_failure(run, EINVAL, "launch: limit of layer", cow.word[2]);
  run_kill(run);
}

static int is_worth_keeping(const struct run *run, const struct entry *cow) {
  return !is_new(cow) || (run->outcome.cause != CAUSE_SETUP && layer_may_have_changes(run->layer, &run->file));
}

void run_settle_layer(struct run *run) {
  struct entry cow;
  if (run->layer < 0 || run->outcome.layer || !launchfile_find(&run->file, V_COW, &cow) || !is_worth_keeping(run, &cow)) return;
  if (run->outcome.cause == CAUSE_EXIT && layer_size_is_over(&run->layer_size, now_ns(), 1)) run->outcome.cause = CAUSE_DISK;
  snprintf(run->layer_path, sizeof run->layer_path, "%s/%s", cow.word[0], run->layer_id);
  run->outcome.layer = run->layer_path;
  flock(run->layer, LOCK_UN); /* for all that have a copy of the descriptor, the sweeper among them */
}

void run_release_layer(struct run *run) {
  struct entry cow;
  run_settle_layer(run);
  if (run->layer < 0 || run->outcome.layer || !launchfile_find(&run->file, V_COW, &cow)) return;
  /* What could not be removed is in `llm-do ps --cow`, or has no record: `llm-do prune` takes it. */
  (void)layer_remove(cow.word[0], run->layer_id);
}
