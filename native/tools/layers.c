/*
 * layers: what copy-on-write runs changed, for `llm-do changes`, `diff`, `apply`, `undo` and `discard`. TypeScript decides and speaks.
 *
 *   layers changes DIRECTORY ID            prints the changes: ten words each, ended by NUL (put_change); with --closed, first what apply leaves alone
 *   layers apply DIRECTORY ID < CHOICE     applies what is chosen, and prints how much that was; status 3 and each conflict where there is one
 *   layers undo DIRECTORY ID               takes the last apply back, or one that was killed; status 3 and the path where it has changed since
 *   layers settle DIRECTORY ID             takes back an apply that was killed
 *   layers view DIRECTORY ID < CHOICE      makes view/a and view/b in the layer: what is chosen, in the zone and in the layer; removes them without a choice
 *   layers discard DIRECTORY ID            removes the layer; --force also one that is damaged
 *
 * Behind the ID come --force, --modes (tools/layer-modes.h), and other directories for layers of this user (tools/layer-stage.h).
 *
 * `changes` and `view` change nothing in a zone, and refuse while an apply that was killed is not taken back; the others do that first, but for
 * a forced discard. Where that keeps what somebody wrote since, it says so and does nothing more. What a run and an apply have written in the
 * layer decides where on the host something is changed: without their seal (lib/seal.h) only --force does that. A status of EXIT_* below, or 125,
 * comes with one line or more on stderr: what, on what, and why.
 */
#include "lib/guard.h"
#include "lib/layer.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "lib/syscalls.h"
#include "lib/programs.h"
#include "tools/layer-apply.h"
#include "tools/layer-journal.h"
#include "tools/layer-view.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* What the caller tells apart. */
#define EXIT_CONFLICT 3
#define EXIT_BUSY 4
#define EXIT_NO_LAYER 5
#define EXIT_REPLACED 6
#define EXIT_NOT_APPLIED 7
#define EXIT_ELSEWHERE 8
#define EXIT_KEPT 9
#define EXIT_UNSEALED 10
#define EXIT_UNFINISHED 11
#define EXIT_DAMAGED 12

static _Noreturn void refuse(int status, const char *path) {
  fprintf(stderr, "%s\n", path);
  exit(status);
}

static _Noreturn void give_up(const char *step, const char *path) {
  fprintf(stderr, "%s: %s: %s\n", step, path, strerror(errno));
  exit(EXIT_SETUP);
}

/* ---- the process ---- */

static int write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  int done = fd < 0 ? -1 : write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
  if (fd >= 0) close(fd);
  return done;
}

/*
 * A command can leave directories that their owner cannot read, and overlay's own has mode 0. In a user namespace of his own a user
 * has every right over his own files, and over no others. Where there is none, what cannot be read is an error later.
 */
static void take_own_files(void) {
  char map[64];
  uid_t uid = geteuid();
  gid_t gid = getegid();
  if (uid == 0 || unshare(CLONE_NEWUSER) < 0) return;
  snprintf(map, sizeof map, "%u %u 1", uid, uid);
  if (write_text("/proc/self/uid_map", map) < 0 || write_text("/proc/self/setgroups", "deny") < 0) return;
  snprintf(map, sizeof map, "%u %u 1", gid, gid);
  (void)!write_text("/proc/self/gid_map", map);
}

static void raise_limit(int resource, rlim_t most) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
  setrlimit(resource, &limit);
}

/* Each directory that a walk goes down takes two descriptors, and some of the stack. */
static void raise_limits(void) {
  raise_limit(RLIMIT_NOFILE, RLIM_INFINITY);
  raise_limit(RLIMIT_STACK, STACK_MOST);
}

/* ---- the layer ---- */

/* The last apply of the layer: its state, as journal_read has it. */
static int find_last(const struct layer *layer, struct journal *journal) {
  int state = 0;
  for (unsigned number = 1;; number++) {
    struct journal next;
    int found = journal_read(&next, layer, number);
    if (found < 0) give_up("damaged journal", "apply");
    if (found == 0) return state;
    if (state) journal_free(journal);
    *journal = next;
    state = found;
  }
}

static void require_seal(int is_sealed, int is_forced, const char *what) {
  if (!is_sealed && !is_forced) refuse(EXIT_UNSEALED, what);
}

/* Whether there was one. */
static int take_back_unfinished(struct layer *layer, int is_forced) {
  struct journal last;
  char failed[PATH_MAX];
  int state = find_last(layer, &last);
  if (state == 1) require_seal(last.is_sealed || !last.is_written, is_forced, "the journal of its apply");
  if (state == 1 && journal_take_back(&last, failed) < 0) give_up("an apply was killed, and cannot be taken back", failed);
  if (state == 1 && last.kept) exit(EXIT_KEPT);
  if (state == 1 && known_read(layer->fd, &layer->known) < 0) give_up("layer", "known"); /* taking it back has added to it */
  if (state == 2 && last.is_sealed && journal_tidy(&last) < 0) give_up("what an apply has left in the directory cannot be removed", "");
  if (state) journal_free(&last);
  return state == 1;
}

/* Then what was taken out of the zones, or what somebody wrote there, is in the layer only. */
static int is_unfinished(const struct layer *layer) {
  for (unsigned number = 1; journal_is_there(layer, number); number++)
    if (journal_is_unfinished(layer, number)) return 1;
  return 0;
}

static void open_zones(struct layer *layer) {
  char failed[PATH_MAX];
  if (layer_open_zones(layer, failed) == 0) return;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE) refuse(EXIT_REPLACED, failed);
  give_up("zone", failed);
}

static int is_same(const struct stat *one, const struct stat *other) { return one->st_dev == other->st_dev && one->st_ino == other->st_ino; }

/* No run has a copy-on-write zone that holds its layer. */
static void refuse_holders(const struct layer *layer) {
  struct stat status, below = {0};
  int fd = fcntl(layer->fd, F_DUPFD_CLOEXEC, 3);
  for (;;) {
    if (fd < 0 || fstat(fd, &status) < 0) give_up("layer", layer->id);
    if (is_same(&status, &below)) break; /* the root is its own parent */
    for (size_t i = 0; i < layer->zones; i++)
      if (is_same(&status, &layer->zone[i].root)) refuse(EXIT_DAMAGED, layer->zone[i].source);
    int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_PATH);
    close(fd);
    fd = above;
    below = status;
  }
  close(fd);
}

/* ---- verbs ---- */

struct options {
  int is_forced, shows_closed;
  struct mode_rule modes;
};

static const char *const KINDS[] = {[ADDED] = "added",     [MODIFIED] = "modified", [DELETED] = "deleted", [RENAMED] = "renamed", [MODE] = "mode",
                                    [SYMLINK] = "symlink", [TYPE] = "type",         [GIT] = "git", [NEW_GIT] = "new-git"};

static const char *type_of(mode_t mode) {
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "other";
}

/* Modes: in the layer, on the host ("" = the host never had it), as it is applied. */
static int put_modes(const struct change *change, const struct mode_rule *rule) {
  char before[16] = "";
  if (change->origin.st_mode && (change->origin.st_mode & S_IFMT) == (change->now.st_mode & S_IFMT))
    snprintf(before, sizeof before, "%o", change->origin.st_mode & 07777);
  return printf("%o%c%s%c%o%c", change->now.st_mode & 0777, 0, before, 0, mode_to_apply(change, rule), 0);
}

static int put_change(void *data, const struct change *change) {
  if (change->kind == KEPT) return 0;
  if (printf("%zu%c%s%c%s%c", change->zone, 0, KINDS[change->kind], 0, type_of(change->now.st_mode), 0) < 0 || put_modes(change, data) < 0) return -1;
  int done = printf("%lld%c%s%s%s%c", (long long)change->now.st_size, 0, change->conflict ? "c" : "", change->nested ? "n" : "",
                    change->is_privileged ? "s" : "", 0);
  return done < 0 || printf("%s%c%s%c", change->path, 0, change->other, 0) < 0 ? -1 : 0;
}

/* A path of a zone that programs of the host run or obey; "." = all of it. */
static void put_closed(size_t zone, const char *path) { printf("%zu%cclosed%cother%c0%c%c0%c0%c%c%s%c%c", zone, 0, 0, 0, 0, 0, 0, 0, 0, path, 0, 0); }

/* By the rules of writable zones. Where these cannot be asked, nothing is known to be harmless. */
static void put_all_closed(const struct layer *layer) {
  static struct guard guard;
  int is_known = guard_prepare_layers(&guard, &layer->record) == 0;
  for (size_t i = 0; !is_known && i < layer->zones; i++) put_closed(i, ".");
  for (size_t i = 0; is_known && i < guard.zones; i++) {
    const struct guard_zone *zone = &guard.zone[i];
    for (size_t j = 0; j < zone->covers; j++)
      if (!zone->cover[j].writable) put_closed(i, zone->cover[j].path);
    for (size_t j = 0; j < zone->names; j++) put_closed(i, zone->name[j].path);
  }
  guard_close(&guard);
}

static int finish(void) {
  if (fflush(stdout) != 0) give_up("write", "standard output");
  return 0;
}

static int print_changes(const struct layer *layer, const struct options *options) {
  char failed[PATH_MAX];
  struct mode_rule rule = options->modes;
  if (options->shows_closed) put_all_closed(layer);
  if (layer_changes(layer, put_change, &rule, failed) != 0) give_up("changes", failed);
  return finish();
}

static int apply(const struct layer *layer, struct mode_rule rule) {
  struct choice choice;
  char failed[PATH_MAX];
  if (choice_read(0, &choice) < 0) give_up("choice", "standard input");
  choice.modes = rule;
  enum apply_end end = layer_apply(layer, &choice, failed);
  if (end == APPLY_FAILED && errno == EXDEV) refuse(EXIT_ELSEWHERE, failed);
  if (end == APPLY_FAILED) give_up("apply", failed);
  finish();
  return end == APPLY_CONFLICT ? EXIT_CONFLICT : 0;
}

static int view(const struct layer *layer) {
  struct choice choice;
  char failed[PATH_MAX];
  if (choice_read(0, &choice) < 0) give_up("choice", "standard input");
  if (layer_view(layer, &choice, failed) != 0) give_up("view", failed);
  return 0;
}

static int undo(const struct layer *layer, int is_forced) {
  struct journal last;
  char failed[PATH_MAX];
  if (find_last(layer, &last) != 2) refuse(EXIT_NOT_APPLIED, "nothing was applied");
  require_seal(last.is_sealed, is_forced, "the journal of its apply");
  int changed = journal_find_changed(&last, failed);
  if (changed < 0) give_up("undo", failed);
  if (changed > 0) return printf("%s%c", failed, 0), finish(), EXIT_CONFLICT;
  if (journal_take_back(&last, failed) < 0) give_up("undo", failed);
  return last.kept ? EXIT_KEPT : 0;
}

/* Of applies that were killed. Those of a zone that is gone went with it. */
static void remove_stages(struct layer *layer, int is_forced) {
  char failed[PATH_MAX];
  if (!layer->zones && layer_open_zones(layer, failed) < 0) return;
  for (unsigned number = 1; journal_is_there(layer, number); number++) {
    struct journal journal;
    int state = journal_read(&journal, layer, number);
    if ((state < 0 || journal_tidy(&journal) < 0) && !is_forced) give_up("discard", layer->zone[0].source);
    if (state > 0) journal_free(&journal);
  }
}

static int discard(struct layer *layer, const char *directory, int is_forced) {
  remove_stages(layer, is_forced);
  int holder = records_open(directory);
  if (holder < 0 || remove_tree(holder, layer->id) < 0) give_up("discard", layer->id);
  return 0;
}

/* In any order. Directories are moved to the start of the words. */
static int read_options(int count, char **words, struct options *options) {
  int directories = 0;
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], "--force") == 0) options->is_forced = 1;
    else if (strcmp(words[i], "--closed") == 0) options->shows_closed = 1;
    else if (strcmp(words[i], "--modes") == 0) options->modes.is_wide = 1;
    else if (words[i][0] == '/') words[directories++] = words[i];
    else return fprintf(stderr, "layers: no option %s\n", words[i]), -1;
  }
  return directories;
}

int layers_main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: layers changes|apply|undo|settle|view|discard DIRECTORY ID\n"), EXIT_SETUP;
  const char *verb = argv[1], *directory = argv[2], *id = argv[3];
  struct options options = {.modes.umask = umask(077)};
  int holders = read_options(argc - 4, argv + 4, &options);
  if (holders < 0) return EXIT_SETUP;
  take_own_files();
  raise_limits();
  static struct layer layer;
  layer.id = id;
  layer.holder = (const char *const *)argv + 4;
  layer.holders = (size_t)holders;
  layer.fd = layer_open(directory, id);
  if (layer.fd < 0 && errno == EWOULDBLOCK) refuse(EXIT_BUSY, "in use");
  if (layer.fd < 0 && errno == ENOENT) refuse(EXIT_NO_LAYER, "not there");
  if (layer.fd < 0) give_up("layer", id);
  int is_discard = strcmp(verb, "discard") == 0, is_look = strcmp(verb, "changes") == 0 || strcmp(verb, "view") == 0, is_sealed = 0;
  int has_record = layer_read_record(layer.fd, id, &layer.record, &is_sealed) == 0;
  if (is_discard && options.is_forced) return discard(&layer, directory, 1);
  if (!has_record) give_up("damaged", id);
  if (is_discard && !is_unfinished(&layer)) return discard(&layer, directory, 0);
  open_zones(&layer);
  refuse_holders(&layer);
  if (is_look && is_unfinished(&layer)) refuse(EXIT_UNFINISHED, layer.zone[0].source);
  if (strcmp(verb, "changes") == 0) return print_changes(&layer, &options);
  if (strcmp(verb, "view") == 0) return view(&layer);
  require_seal(is_sealed, options.is_forced, layer.zone[0].source);
  int was_unfinished = take_back_unfinished(&layer, options.is_forced);
  if (strcmp(verb, "settle") == 0) return 0;
  if (strcmp(verb, "apply") == 0) return apply(&layer, options.modes);
  if (strcmp(verb, "undo") == 0) return was_unfinished ? 0 : undo(&layer, options.is_forced);
  if (is_discard) return discard(&layer, directory, 0);
  return fprintf(stderr, "layers: no verb %s\n", verb), EXIT_SETUP;
}
