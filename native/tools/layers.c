/*
 * layers: what copy-on-write runs changed, for `llm-do changes`, `diff`, `apply`, `undo` and `discard`. TypeScript speaks.
 *
 *   layers changes DIRECTORY ID            prints the changes: ten words each, ended by NUL (put_change)
 *   layers apply DIRECTORY ID < PATHS      applies what the paths mean, each ended by NUL, or everything but what is protected; prints what was done (put_left)
 *   layers end DIRECTORY ID                the same for a run that has just ended, where nothing stands in the way: "APPLIED NARROWED LEFT" (apply_at_end)
 *   layers undo DIRECTORY ID               takes the last apply back, or one that was killed; status 3 and the path where it has changed since
 *   layers settle DIRECTORY ID             takes back an apply that was killed
 *   layers view DIRECTORY ID < CHOICE      makes view/a and view/b in the layer: what is chosen, in the zone and in the layer; removes them without a choice
 *   layers discard DIRECTORY ID            removes the layer; --force also one that is damaged
 *
 * Behind the ID come options (read_options) and other directories for layers of this user (tools/layer-stage.h).
 *
 * `changes` and `view` change nothing in a zone, and refuse while an apply that was killed is not taken back; the others do that first, but for
 * a forced discard. Where that keeps what somebody wrote since, it says so and does nothing more. What a run and an apply have written in the
 * layer decides where on the host something is changed: without their seal (lib/seal.h) only --force does that. A status of EXIT_* below, or 125,
 * comes with one line or more on stderr: what, on what, and why.
 */
#include "lib/files.h"
#include "lib/layer.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "lib/syscalls.h"
#include "lib/text.h"
#include "lib/programs.h"
#include "tools/layer-apply.h"
#include "tools/layer-choice.h"
#include "tools/layer-journal.h"
#include "tools/layer-protected.h"
#include "tools/layer-view.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Exit codes that the caller tells apart. */
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
#define EXIT_UNKNOWN 13
#define EXIT_LARGE 14

static _Noreturn void refuse(int status, const char *path) {
  fprintf(stderr, "%s\n", path);
  exit(status);
}

static _Noreturn void give_up(const char *step, const char *path) {
  fprintf(stderr, "%s: %s: %s\n", step, path, strerror(errno));
  exit(EXIT_SETUP);
}

/* Paths of a caller. */
#define PATHS_MAX (1u << 30)

/* ---- the process ---- */

static int write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  return close_with(fd, fd < 0 ? -1 : write_all(fd, text, strlen(text)));
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
  unsigned number = 1;
  while (journal_is_there(layer, number + 1)) number++;
  int state = journal_read(journal, layer, number);
  if (state < 0) give_up("damaged journal", "apply");
  return state;
}

static void require_seal(int is_sealed, int is_forced, const char *what) {
  if (!is_sealed && !is_forced) refuse(EXIT_UNSEALED, what);
}

static void read_notes(struct layer *layer) {
  if (notes_read(layer->fd, &layer->notes) < 0) give_up("cannot be read", "notes");
}

/* Whether there was one. */
static int take_back_unfinished(struct layer *layer, int is_forced) {
  struct journal last;
  char failed[PATH_MAX];
  int state = find_last(layer, &last);
  if (state == 1) require_seal(last.is_sealed || !last.is_written, is_forced, "the journal of its apply");
  if (state == 1 && journal_take_back(&last, failed) < 0) give_up("an apply was killed, and cannot be taken back", failed);
  if (state == 1 && last.kept) exit(EXIT_KEPT);
  if (state == 1) read_notes(layer); /* taking it back has added to them */
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
  if (layer_open_zones(layer, failed) == 0) return read_notes(layer);
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
  int is_forced, has_ended, prints_choice;
  struct mode_rule modes;
  struct wish wish;
};

static const char *const KINDS[] = {[ADDED] = "added",     [MODIFIED] = "modified", [DELETED] = "deleted", [RENAMED] = "renamed", [MODE] = "mode",
                                    [SYMLINK] = "symlink", [TYPE] = "type"};

static const char *type_of(mode_t mode) {
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "other";
}

/* Modes: in the layer, on the host ("" = the host never had it), as it is applied. */
static void put_modes(const struct listed *item) {
  char before[16] = "";
  if (item->before && (item->before & S_IFMT) == (item->now & S_IFMT)) snprintf(before, sizeof before, "%o", item->before & 07777);
  printf("%o%c%s%c%o%c", item->now & 0777, 0, before, 0, item->applied, 0);
}

static void put_change(const struct listed *item) {
  printf("%zu%c%s%c%s%c", item->zone, 0, KINDS[item->kind], 0, type_of(item->now), 0);
  put_modes(item);
  printf("%lld%c%s%s%s%c", item->size, 0, item->conflict ? "c" : "", item->nested ? "n" : "", item->is_protected ? "p" : "", 0);
  printf("%s%c%s%c", item->path, 0, item->other, 0);
}

static int finish(void) {
  if (fflush(stdout) != 0) give_up("write", "standard output");
  return 0;
}

/* Kinds of what the zone has something for. */
static int is_there(const struct listed *item) { return item->kind == MODIFIED || item->kind == MODE || item->kind == SYMLINK || item->kind == TYPE; }

static int was_there(const struct layer *layer, const struct listed *item) {
  return notes_have(&layer->notes, (struct zone_path){item->zone, item->path}, NOTE_WAS_THERE);
}

/* The run has just ended. */
static int note_there(const struct layer *layer, const struct list *list) {
  FILE *out = text_begin();
  for (size_t i = 0; out && i < list->count; i++) {
    const struct listed *item = &list->item[i];
    if (is_there(item) && !was_there(layer, item)) note_put(out, (struct zone_path){item->zone, item->path}, NOTE_WAS_THERE);
  }
  return notes_add(layer->fd);
}

/* A file that the host removed since is a conflict. */
static void compare_with_notes(const struct layer *layer, const struct list *list) {
  for (size_t i = 0; i < list->count; i++)
    if (list->item[i].kind == ADDED && was_there(layer, &list->item[i])) list->item[i].conflict = 1;
}

static void read_list(struct list *list, const struct layer *layer, const struct options *options) {
  char failed[PATH_MAX];
  struct protection protection = {0};
  if (protection_read(&protection, layer) < 0) give_up("protected", layer->id);
  if (list_read(list, layer, &options->modes, failed) < 0) give_up("changes", failed);
  if (options->has_ended && note_there(layer, list) < 0) give_up("cannot be written", "notes");
  compare_with_notes(layer, list);
  if (protect_list(&protection, list) < 0) give_up("protected", layer->id);
}

static void read_paths(struct wish *wish) {
  size_t size, count = 0;
  char *bytes = read_all(0, PATHS_MAX, &size), *end = bytes ? bytes + size : NULL;
  char **path = bytes ? calloc(size + 1, sizeof *path) : NULL;
  if (!path || (size && end[-1])) give_up("paths", "standard input");
  for (char *at = bytes; at < end; at += strlen(at) + 1) path[count++] = at;
  wish->path = path;
  wish->paths = count;
}

static void choose(struct list *list, const struct layer *layer, const struct wish *wish) {
  long done = choose_changes(list, layer, wish);
  if (done < 0) give_up("choice", layer->id);
  if (done > 0 && wish->path) refuse(EXIT_UNKNOWN, wish->path[done - 1]);
}

/* With --choice, of the paths of standard input only: what would be applied if nothing were protected, and what is special. */
static int print_changes(const struct layer *layer, struct options *options) {
  struct list list = {0};
  if (options->prints_choice) read_paths(&options->wish);
  read_list(&list, layer, options);
  if (options->prints_choice) choose(&list, layer, &options->wish);
  for (size_t i = 0; i < list.count; i++)
    if (is_change(&list.item[i]) && (!options->prints_choice || list.item[i].is_chosen || list.item[i].is_left)) put_change(&list.item[i]);
  return finish();
}

/* ---- apply ---- */

/* `protected NUL PATH NUL` and `special NUL PATH NUL` of what is left out. */
static size_t put_left(const struct list *list, int is_printed) {
  size_t left = 0;
  for (size_t i = 0; i < list->count; i++) {
    const struct listed *item = &list->item[i];
    left += item->is_left;
    if (item->is_left && is_printed) printf("%s%c%s%c", is_special(item) ? "special" : "protected", 0, item->path, 0);
  }
  return left;
}

/* `conflict NUL PATH NUL` */
static size_t put_conflicts(const struct list *list, int is_printed) {
  size_t conflicts = 0;
  for (size_t i = 0; i < list->count; i++) {
    const struct listed *item = &list->item[i];
    int is_in_the_way = item->is_chosen && item->conflict;
    conflicts += is_in_the_way;
    if (is_in_the_way && is_printed) printf("conflict%c%s%c", 0, item->path, 0);
  }
  return conflicts;
}

/* With the repositories that were judged: layer_apply makes no other one. */
static size_t take_choice(const struct list *list, const struct options *options, struct choice *choice) {
  *choice = (struct choice){.modes = options->modes, .is_forced = options->is_forced};
  for (size_t i = 0; i < list->count; i++) {
    const struct listed *item = &list->item[i];
    if (is_change(item) && !item->is_chosen) continue;
    if (zone_paths_add(is_change(item) ? &choice->changes : &choice->repositories, (struct zone_path){item->zone, item->path}) < 0) give_up("choice", item->path);
  }
  zone_paths_sort(&choice->changes), zone_paths_sort(&choice->repositories);
  return choice->changes.count;
}

static void carry_out(const struct layer *layer, const struct choice *choice, struct applied *applied) {
  char failed[PATH_MAX];
  enum apply_end end = layer_apply(layer, choice, applied, failed);
  if (end == APPLY_FAILED && errno == EXDEV) refuse(EXIT_ELSEWHERE, failed);
  if (end == APPLY_FAILED) give_up("apply", failed);
  if (end == APPLY_CONFLICT) finish(), exit(EXIT_CONFLICT);
}

static int apply(const struct layer *layer, struct options *options) {
  struct list list = {0};
  struct choice choice;
  struct applied applied = {0};
  read_paths(&options->wish);
  read_list(&list, layer, options);
  choose(&list, layer, &options->wish);
  put_left(&list, 1);
  if (!options->is_forced && put_conflicts(&list, 1) > 0) return finish(), EXIT_CONFLICT;
  if (take_choice(&list, options, &choice) > 0) carry_out(layer, &choice, &applied);
  printf("applied%c%zu%cnarrowed%c%zu%c", 0, applied.count, 0, 0, applied.narrowed, 0);
  return finish();
}

/* ---- discard ---- */

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

/* ---- the end of a run ---- */

/* An apply of this size takes no time that a person would want to stop. */
#define CHANGES_AT_END 1000
#define BYTES_AT_END (16 << 20)

static int is_large(const struct list *list) {
  long long size = 0;
  for (size_t i = 0; i < list->count && size <= BYTES_AT_END; i++) size += S_ISREG(list->item[i].now) ? list->item[i].size : 0;
  return list->count > CHANGES_AT_END || size > BYTES_AT_END;
}

/*
 * Applies for `exec --apply on-success` at the end of a run, for a client without words for anything else: a small change, all of which can
 * be applied or left out. With another status nothing was done, or it was taken back, and Node decides.
 */
static int apply_at_end(struct layer *layer, struct options *options, const char *directory) {
  struct list list = {0};
  struct choice choice;
  struct applied applied = {0};
  if (is_unfinished(layer)) refuse(EXIT_UNFINISHED, layer->zone[0].source);
  options->has_ended = 1;
  read_list(&list, layer, options);
  size_t changes = 0;
  for (size_t i = 0; i < list.count; i++) changes += (size_t)is_change(&list.item[i]);
  if (changes == 0 && journal_is_there(layer, 1)) return 0; /* an undo needs it */
  if (changes == 0) return discard(layer, directory, 0);
  if (is_large(&list)) refuse(EXIT_LARGE, layer->id);
  choose(&list, layer, &options->wish);
  if (put_conflicts(&list, 0) > 0) return EXIT_CONFLICT;
  size_t left = put_left(&list, 0);
  if (take_choice(&list, options, &choice) > 0) carry_out(layer, &choice, &applied);
  printf("%zu %zu %zu\n", applied.count, applied.narrowed, left);
  return finish();
}

/* ---- other verbs ---- */

/* `zone NUL path NUL`... */
static void read_choice(struct zone_paths *chosen) {
  size_t size;
  const char *at = read_all(0, PATHS_MAX, &size), *end = at ? at + size : NULL;
  if (!at) give_up("choice", "standard input");
  while (at < end) {
    uint64_t zone;
    const char *number = take_word(&at, end), *path = number ? take_word(&at, end) : NULL;
    if (!path || parse_number(number, SIZE_MAX, &zone) < 0 || zone_paths_add(chosen, (struct zone_path){(size_t)zone, path}) < 0) give_up("choice", "standard input");
  }
  zone_paths_sort(chosen);
}

static int view(const struct layer *layer) {
  struct zone_paths chosen = {0};
  char failed[PATH_MAX];
  read_choice(&chosen);
  if (layer_view(layer, &chosen, failed) != 0) give_up("view", failed);
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

/*
 * In any order. Directories are moved to the start of the words.
 *
 *   --force   also without a seal, and over what the host has changed
 *   --modes   tools/layer-modes.h
 *   --ended   the run has just ended: what its zones have is noted (tools/layer-notes.h)
 *   --choice  with changes: print_changes
 *   --careful with apply: what is protected is left out although it was named
 */
static int read_options(int count, char **words, struct options *options) {
  int directories = 0;
  for (int i = 0; i < count; i++) {
    if (strcmp(words[i], "--force") == 0) options->is_forced = 1;
    else if (strcmp(words[i], "--ended") == 0) options->has_ended = 1;
    else if (strcmp(words[i], "--choice") == 0) options->prints_choice = options->wish.is_for_all = 1;
    else if (strcmp(words[i], "--careful") == 0) options->wish.is_not_a_person = 1;
    else if (strcmp(words[i], "--modes") == 0) options->modes.is_wide = 1;
    else if (words[i][0] == '/') words[directories++] = words[i];
    else return fprintf(stderr, "layers: no option %s\n", words[i]), -1;
  }
  return directories;
}

int layers_main(int argc, char **argv) {
  if (argc < 4) return fprintf(stderr, "usage: layers changes|apply|end|undo|settle|view|discard DIRECTORY ID\n"), EXIT_SETUP;
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
  if (strcmp(verb, "end") == 0) return apply_at_end(&layer, &options, directory);
  int was_unfinished = take_back_unfinished(&layer, options.is_forced);
  if (strcmp(verb, "settle") == 0) return 0;
  if (strcmp(verb, "apply") == 0) return apply(&layer, &options);
  if (strcmp(verb, "undo") == 0) return was_unfinished ? 0 : undo(&layer, options.is_forced);
  if (is_discard) return discard(&layer, directory, 0);
  return fprintf(stderr, "layers: no verb %s\n", verb), EXIT_SETUP;
}
