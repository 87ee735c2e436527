#include "tools/layer-journal.h"

#include "lib/arena.h"
#include "lib/files.h"
#include "lib/layer-copy.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/repository.h"
#include "lib/run-record.h"
#include "lib/seal.h"
#include "lib/syscalls.h"
#include "lib/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNFINISHED "journal"
#define APPLIED "applied"
#define DRAFT "draft" /* being written: no step was taken */
#define TAKEN_BACK "back" /* nothing is left of it in the zones */
#define FIELDS 13

typedef char number_name[24];

static void name_of(const struct step *step, number_name name) { snprintf(name, sizeof(number_name), "%zu", step->number); }

static int rename_with(int from, const char *name, int to, const char *new_name, unsigned flags) {
  return (int)syscall(SYS_renameat2, from, name, to, new_name, flags);
}

/* ---- where the numbers are ---- */

static int begin_stages(struct journal *journal) {
  const struct layer *layer = journal->layer;
  journal->stage = malloc((layer->zones + 1) * sizeof *journal->stage);
  if (!journal->stage) return -1;
  for (size_t i = 0; i < layer->zones; i++) {
    journal->stage[i] = (struct stage){layer, i, journal->number, stage_place(layer, i), -1};
    if (!journal->stage[i].place) return -1;
  }
  return 0;
}

static int is_apart(const struct journal *journal, size_t zone) { return stage_is_apart(&journal->stage[zone]); }

int journal_stage(struct journal *journal, size_t zone) {
  struct stage *stage = &journal->stage[zone];
  if (stage->fd >= 0) return stage->fd;
  if (strcmp(stage->place, STAGE_NOWHERE) == 0) return errno = EXDEV, -1;
  return stage->fd = stage_is_apart(stage) ? stage_reach(stage) : fcntl(journal->directory, F_DUPFD_CLOEXEC, 3);
}

/* Whether a step that was taken has left a file under its number. */
static int gives_back(const struct step *step) { return step->kind == STEP_EXCHANGE || step->kind == STEP_REMOVE; }

/* Between the stages and LAYER/apply.K, where it stays. */
static int copy_given_back(struct journal *journal, int to_layer) {
  for (size_t i = 0; i < journal->steps; i++) {
    const struct step *step = &journal->step[i];
    number_name name;
    name_of(step, name);
    if (!gives_back(step) || !is_apart(journal, step->zone)) continue;
    int stage = journal_stage(journal, step->zone);
    if (stage < 0 || copy_whole(to_layer ? stage : journal->directory, name, to_layer ? journal->directory : stage, name) < 0) return -1;
  }
  return 0;
}

static int has_stages(const struct journal *journal) {
  int has = 0;
  for (size_t i = 0; i < journal->layer->zones; i++) has |= is_apart(journal, i);
  return has;
}

/* In the layer and on its disk, before the stages go. */
static int keep_given_back(struct journal *journal) {
  if (!has_stages(journal)) return 0;
  return copy_given_back(journal, 1) < 0 ? -1 : syncfs(journal->directory);
}

/* Writes files that were prepared on other file systems than the layer's to disk. */
static int sync_stages(struct journal *journal) {
  for (size_t i = 0; i < journal->layer->zones; i++)
    if (journal->stage[i].fd >= 0 && is_apart(journal, i) && syncfs(journal->stage[i].fd) < 0) return -1;
  return 0;
}

static int remove_stage(const struct journal *journal, size_t zone) {
  struct stage *stage = &journal->stage[zone];
  if (!journal->is_written) return stage_remove_anywhere(journal->layer, zone, journal->number);
  if (!stage_is_apart(stage)) return 0;
  /* By its descriptor first: a command that can write in the zone can rename it, or put something else in its place. */
  if (stage->fd >= 0 && remove_contents(stage->fd) < 0) return -1;
  return stage_remove(stage) == 0 || stage_is_foreign(errno) ? 0 : -1;
}

static int remove_stages(struct journal *journal) {
  for (size_t i = 0; i < journal->layer->zones; i++) {
    if (remove_stage(journal, i) < 0) return -1;
    if (is_apart(journal, i)) journal->stage[i].fd = close_with(journal->stage[i].fd, -1);
  }
  return 0;
}

/* ---- the file ---- */

static void put_number(FILE *out, unsigned long long number) { fprintf(out, "%llu%c", number, 0); }

static void put_time(FILE *out, const struct timespec *time) {
  put_number(out, (unsigned long long)time->tv_sec), put_number(out, (unsigned long long)time->tv_nsec);
}

/* A capital letter: in a repository that is known. */
static void put_step(FILE *out, const struct step *step) {
  fprintf(out, "%c%c", step->is_known ? toupper((int)step->kind) : (int)step->kind, 0);
  put_number(out, step->zone), put_number(out, step->number);
  fwrite(step->path, 1, strlen(step->path) + 1, out);
  put_number(out, step->made), put_number(out, step->was), put_number(out, step->mode), put_number(out, step->old_mode);
  put_time(out, &step->parent), put_time(out, &step->made_time);
  put_number(out, (unsigned long long)step->made_size);
}

typedef char journal_purpose[RUN_ID_MAX + 32];

static void purpose_of(const struct journal *journal, journal_purpose purpose) {
  snprintf(purpose, sizeof(journal_purpose), "apply %u of %s", journal->number, journal->layer->id);
}

static const char *text_of(const struct journal *journal, size_t *size) {
  unsigned char secret[SECRET_BYTES];
  journal_purpose purpose;
  FILE *out = text_begin();
  if (!out) return NULL;
  for (size_t i = 0; i < journal->layer->zones; i++) fprintf(out, "%s%c", journal->stage[i].place, 0);
  for (size_t i = 0; i < journal->steps; i++) put_step(out, &journal->step[i]);
  fprintf(out, "end%c", 0);
  purpose_of(journal, purpose);
  return text_end_sealed(out, secret_read(secret) == 0 ? secret : NULL, purpose, size);
}

static int write_file(struct journal *journal) {
  size_t size;
  struct stat status;
  const char *bytes = text_of(journal, &size);
  int fd = bytes ? openat(journal->directory, DRAFT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (fd < 0 || write_all(fd, bytes, size) < 0 || fsync(fd) < 0 || fstat(fd, &status) < 0) return close_with(fd, -1);
  journal->written = status.st_mtim, journal->is_written = 1;
  return close_with(fd, 0);
}

static int read_step(const char **at, const char *end, struct step *step) {
  const char *word[FIELDS];
  uint64_t number[FIELDS] = {0};
  for (int i = 0; i < FIELDS; i++) {
    if (!(word[i] = take_word(at, end))) return -1;
    if (i == 0 && strcmp(word[0], "end") == 0) return 0;
    if (i != 0 && i != 3 && parse_number(word[i], UINT64_MAX, &number[i]) < 0) return errno = EBADMSG, -1;
  }
  *step = (struct step){.kind = (enum step_kind)tolower((unsigned char)word[0][0]), .is_known = isupper((unsigned char)word[0][0]) != 0, .zone = number[1], .number = number[2], .path = word[3], .made = number[4],
                        .was = number[5], .mode = (mode_t)number[6], .old_mode = (mode_t)number[7],
                        .parent = {(time_t)number[8], (long)number[9]}, .made_time = {(time_t)number[10], (long)number[11]},
                        .made_size = (off_t)number[12]};
  return 1;
}

/* Reads the place that was noted of each zone; `elsewhere` becomes a zone whose place is not reachable any more. */
static int read_places(struct journal *journal, const char **at, const char *end) {
  for (size_t i = 0; i < journal->layer->zones; i++) {
    if (!(journal->stage[i].place = take_word(at, end))) return -1;
    int is_reachable = stage_is_reachable(&journal->stage[i]);
    if (is_reachable < 0) return -1;
    if (!is_reachable) journal->elsewhere = journal->layer->zone[i].source;
  }
  return 0;
}

int journal_add(struct journal *journal, const struct step *step) { return append(journal->step, journal->steps, step); }

#define JOURNAL_MAX (1u << 30)

static int read_steps(struct journal *journal, int fd) {
  size_t size;
  struct step step;
  char *bytes = read_all(fd, JOURNAL_MAX, &size); /* the steps point into it */
  if (!bytes) return -1;
  const char *at = bytes;
  int got;
  journal_purpose purpose;
  purpose_of(journal, purpose);
  if (seal_take(bytes, &size, purpose, &journal->is_sealed) < 0) return -1;
  if (read_places(journal, &at, bytes + size) < 0) return -1;
  while ((got = read_step(&at, bytes + size, &step)) > 0)
    if (step.zone >= journal->layer->zones || journal_add(journal, &step) < 0) return errno = EBADMSG, -1;
  return got;
}

static void directory_name(unsigned number, char name[24]) { snprintf(name, 24, "apply.%u", number); }

int journal_is_there(const struct layer *layer, unsigned number) {
  char name[24];
  directory_name(number, name);
  return faccessat(layer->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int may_have(const struct layer *layer, unsigned number, const char *file) {
  char path[48];
  snprintf(path, sizeof path, "apply.%u/%s", number, file);
  return faccessat(layer->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int journal_is_unfinished(const struct layer *layer, unsigned number) {
  return may_have(layer, number, UNFINISHED) || may_have(layer, number, TAKEN_BACK);
}

int journal_read(struct journal *journal, const struct layer *layer, unsigned number) {
  char name[24];
  directory_name(number, name);
  *journal = (struct journal){.layer = layer, .number = number};
  journal->directory = open_beneath(layer->fd, name, O_RDONLY | O_DIRECTORY);
  if (journal->directory < 0) return errno == ENOENT ? 0 : -1;
  if (begin_stages(journal) < 0) return -1;
  int state = 1, fd = open_beneath(journal->directory, UNFINISHED, O_RDONLY);
  if (fd < 0 && errno == ENOENT) fd = open_beneath(journal->directory, TAKEN_BACK, O_RDONLY);
  if (fd < 0 && errno == ENOENT) state = 2, fd = open_beneath(journal->directory, APPLIED, O_RDONLY);
  if (fd < 0) return errno == ENOENT ? 1 : -1; /* it ended before it was written: nothing was done */
  struct stat status;
  int done = fstat(fd, &status) < 0 ? -1 : read_steps(journal, fd);
  journal->is_written = 1;
  journal->written = status.st_mtim; /* renaming it moves ctime */
  if (state == 2) journal->done = status.st_mtim;
  return close_with(fd, done < 0 ? -1 : state);
}

int journal_begin(struct journal *journal, const struct layer *layer) {
  char name[24];
  *journal = (struct journal){.layer = layer};
  do directory_name(++journal->number, name);
  while (mkdirat(layer->fd, name, 0700) < 0 && errno == EEXIST);
  journal->directory = open_beneath(layer->fd, name, O_RDONLY | O_DIRECTORY);
  return journal->directory < 0 ? -1 : begin_stages(journal);
}

/* ---- places in a zone ---- */

struct place {
  int directory;
  const char *name;
};

static int open_place(const struct journal *journal, const struct step *step, struct place *place) {
  place->directory = open_parent_beneath(journal->layer->zone[step->zone].lower, step->path, &place->name);
  return place->directory < 0 ? -1 : 0;
}

/* 0 = there is nothing of that name. */
static int inode_at(int directory, const char *name, ino_t *inode) {
  struct stat status;
  int done = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW);
  *inode = done < 0 ? 0 : status.st_ino;
  return done < 0 && errno != ENOENT ? -1 : 0;
}

static int change_mode(const struct place *place, ino_t inode, mode_t from, mode_t to) {
  struct stat status;
  int fd = openat(place->directory, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  int done = fd < 0 || fstat(fd, &status) < 0 ? -1 : 0;
  if (done == 0 && (status.st_ino != inode || (status.st_mode & 07777) != from)) done = -1, errno = ESTALE;
  if (done == 0) done = chmod(fd_path(fd).text, to);
  return close_with(fd, done);
}

/* A step by a rename, without a look at what it moves. */
static int move(enum step_kind kind, int stage, const char *number, const struct place *place) {
  switch (kind) {
    case STEP_NEW: return rename_with(stage, number, place->directory, place->name, RENAME_NOREPLACE);
    case STEP_EXCHANGE: return rename_with(stage, number, place->directory, place->name, RENAME_EXCHANGE);
    case STEP_REMOVE: return rename_with(place->directory, place->name, stage, number, RENAME_NOREPLACE);
    default: return errno = EBADMSG, -1;
  }
}

static enum step_kind inverse_of(enum step_kind kind) { return kind == STEP_NEW ? STEP_REMOVE : kind == STEP_REMOVE ? STEP_NEW : kind; }

/* ---- forth ---- */

/* Compares the removed file with the expected one: a process on the host may have exchanged it. */
static int is_expected(int directory, const char *name, const struct stat *before) {
  struct stat was;
  if (fstatat(directory, name, &was, AT_SYMLINK_NOFOLLOW) < 0) return 0;
  if (was.st_ino != before->st_ino || was.st_dev != before->st_dev) return 0;
  return S_ISDIR(was.st_mode) || (was.st_size == before->st_size && was.st_mtim.tv_sec == before->st_mtim.tv_sec &&
                                  was.st_mtim.tv_nsec == before->st_mtim.tv_nsec);
}

/* Compares the file in its place with the prepared one. */
static int is_made(const struct place *place, const struct step *step) {
  struct stat status;
  if (fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_ino != step->made) return 0;
  return S_ISDIR(status.st_mode) || status.st_size == step->made_size;
}

/* Asked after the step, so that nothing made before it is missed; what is made later is an attempt of its maker's, which has a guard. */
static int check_repository(const struct step *step, const struct place *place) {
  int is_new = step->is_known ? 0 : repository_is_in(place->directory);
  return is_new > 0 ? (errno = ESTALE, -1) : is_new;
}

static int take_step(struct journal *journal, const struct step *step) {
  struct place place;
  number_name name;
  name_of(step, name);
  int stage = journal_stage(journal, step->zone);
  if (stage < 0 || open_place(journal, step, &place) < 0) return -1;
  int done = step->kind == STEP_MODE ? change_mode(&place, step->was, step->old_mode, step->mode) : move(step->kind, stage, name, &place);
  if (done == 0 && gives_back(step) && !is_expected(stage, name, &step->before)) done = -1, errno = ESTALE;
  if (done == 0 && step->made && !is_made(&place, step)) done = -1, errno = ESTALE;
  if (done == 0 && step->kind != STEP_REMOVE) done = check_repository(step, &place);
  return close_with(place.directory, done);
}

static int sync_zones(const struct journal *journal) {
  for (size_t i = 0; i < journal->layer->zones; i++)
    if (syncfs(journal->layer->zone[i].lower) < 0) return -1;
  return 0;
}

/* Everything from now on is later than the journal's last name. */
static int name_file(const struct journal *journal, const char *from, const char *to) {
  return renameat(journal->directory, from, journal->directory, to) < 0 ? -1 : fsync(journal->directory);
}

static int note_all(const struct journal *journal);

int journal_carry_out(struct journal *journal, char failed[PATH_MAX]) {
  copy_text(failed, PATH_MAX, "");
  if (syncfs(journal->directory) < 0 || sync_stages(journal) < 0 || write_file(journal) < 0 || name_file(journal, DRAFT, UNFINISHED) < 0 || fsync(journal->layer->fd) < 0) return -1;
  for (size_t i = 0; i < journal->steps; i++) {
    copy_text(failed, PATH_MAX, journal->step[i].path);
    if (take_step(journal, &journal->step[i]) < 0) return -1;
  }
  copy_text(failed, PATH_MAX, "");
  if (sync_zones(journal) < 0 || keep_given_back(journal) < 0 || note_all(journal) < 0) return -1;
  /* The file is on the disk since the first step. Its own time says when the apply was done. */
  if (utimensat(journal->directory, UNFINISHED, NULL, 0) < 0 || name_file(journal, UNFINISHED, APPLIED) < 0) return -1;
  (void)remove_stages(journal); /* it is done: what could not be removed is removed by the next verb */
  return 0;
}

/* ---- back ---- */

/* The prepared file is still here, or no file came out: its place need not even be reachable. 1, 0, or -1 with errno. */
static int is_untaken(int stage, const struct step *step) {
  number_name name;
  ino_t here;
  name_of(step, name);
  if (step->kind == STEP_MODE) return 0;
  if (inode_at(stage, name, &here) < 0) return -1;
  return here == (step->kind == STEP_REMOVE ? 0 : step->made);
}

static int take_back_mode(const struct step *step, const struct place *place) {
  if (change_mode(place, step->was, step->mode, step->old_mode) == 0) return 0;
  return errno == ESTALE ? change_mode(place, step->was, step->old_mode, step->old_mode) : -1;
}

/* 1 when it was, 0 when there was nothing to take back. */
static int take_back(int stage, const struct step *step, const struct place *place) {
  number_name name;
  ino_t here, there;
  name_of(step, name);
  if (step->kind == STEP_MODE) return take_back_mode(step, place);
  if (inode_at(stage, name, &here) < 0 || inode_at(place->directory, place->name, &there) < 0) return -1;
  if ((step->kind == STEP_EXCHANGE && here == 0) || (step->kind != STEP_REMOVE && there != step->made)) return errno = ESTALE, -1;
  if (move(inverse_of(step->kind), stage, name, place) < 0) return -1;
  if (step->kind != STEP_REMOVE || check_repository(step, place) == 0) return 1;
  int error = errno;
  (void)move(step->kind, stage, name, place);
  return errno = error, -1;
}

static int is_newer(const struct timespec *time, const struct timespec *done) {
  return time->tv_sec > done->tv_sec || (time->tv_sec == done->tv_sec && time->tv_nsec > done->tv_nsec);
}

static int give_back_time(const struct place *place, const struct step *step) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, step->parent};
  return utimensat(AT_FDCWD, fd_path(place->directory).text, times, 0);
}

static int take_back_step(struct journal *journal, const struct step *step) {
  struct place place;
  int stage = journal_stage(journal, step->zone);
  if (stage < 0) return -1;
  int untaken = is_untaken(stage, step);
  if (untaken != 0) return untaken < 0 ? -1 : 0;
  if (open_place(journal, step, &place) < 0) return -1;
  struct stat parent;
  int done = fstat(place.directory, &parent) < 0 ? -1 : take_back(stage, step, &place);
  /* Not where somebody else has changed the directory since. */
  int is_changed = journal->done.tv_sec != 0 && is_newer(&parent.st_mtim, &journal->done);
  if (done == 1) done = is_changed ? 0 : give_back_time(&place, step);
  return close_with(place.directory, done);
}

/* ---- what is not our own doing ---- */

static int tree_is_newer(int directory, const char *name, const struct timespec *done);

static int entries_are_newer(int directory, const char *name, const struct timespec *done) {
  int fd = open_beneath(directory, name, O_RDONLY | O_DIRECTORY), newer = 0;
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) return close_with(fd, -1);
  for (const char *below; newer == 0 && (below = entries_next(entries));) newer = tree_is_newer(fd, below, done);
  return entries_close(entries, newer);
}

/* 1 when something at or below a name has changed since `done`, 0, -1 with errno. */
static int tree_is_newer(int directory, const char *name, const struct timespec *done) {
  struct stat status;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  if (is_newer(&status.st_ctim, done)) return 1;
  return S_ISDIR(status.st_mode) ? entries_are_newer(directory, name, done) : 0;
}

/* ---- what is our own doing ---- */

/* A copy is new, with everything below it. An entry too deep to be noted makes a conflict, and loses nothing. */
static void note_tree(FILE *out, struct zone_path top, int directory, const char *name, size_t depth) {
  int fd = depth == 0 ? -1 : open_beneath(directory, name, O_RDONLY | O_DIRECTORY);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  for (const char *entry; entries && (entry = entries_next(entries));) {
    struct stat status;
    char *below;
    if (fstatat(fd, entry, &status, AT_SYMLINK_NOFOLLOW) < 0 || asprintf(&below, "%s/%s", top.path, entry) < 0) continue;
    const struct zone_path path = {top.zone, below};
    note_put(out, path, status.st_ctim);
    if (S_ISDIR(status.st_mode)) note_tree(out, path, fd, entry, depth - 1);
    free(below);
  }
  if (entries) closedir(entries);
}

static void note_place(FILE *out, const struct journal *journal, const struct step *step, const struct place *place) {
  struct stat status;
  size_t length = (size_t)(place->name - step->path);
  if (fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
    const struct zone_path path = {step->zone, step->path};
    note_put(out, path, status.st_ctim);
    if (S_ISDIR(status.st_mode) && gives_back(step) && is_apart(journal, step->zone)) note_tree(out, path, place->directory, place->name, layer_deepest());
  }
  if (fstat(place->directory, &status) < 0) return;
  char *parent = length ? strndup(step->path, length - 1) : strdup(".");
  if (parent) note_put(out, (struct zone_path){step->zone, parent}, status.st_ctim);
  free(parent);
}

/* A missing note makes a conflict, and loses nothing. */
static int note_all(const struct journal *journal) {
  FILE *out = text_begin();
  if (!out) return -1;
  for (size_t i = 0; i < journal->steps; i++) {
    struct place place;
    if (open_place(journal, &journal->step[i], &place) < 0) continue;
    note_place(out, journal, &journal->step[i], &place);
    close(place.directory);
  }
  return notes_add(journal->layer->fd);
}

/* ---- what somebody wrote meanwhile ---- */

/* Putting a name in place and taking it back moves the ctime of its inode, and of nothing below it. 1, 0, or -1 with errno. */
static int was_written(const struct journal *journal, int stage, const char *name, const struct step *step) {
  struct stat status;
  if (fstatat(stage, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -1; /* it was kept before a kill */
  if (S_ISDIR(status.st_mode)) return entries_are_newer(stage, name, &journal->written);
  return status.st_size != step->made_size || is_newer(&status.st_mtim, &step->made_time) || is_newer(&step->made_time, &status.st_mtim);
}

/* In the same directory, where its author will find it. */
static int keep(struct journal *journal, int stage, const char *number, const struct step *step) {
  struct place place;
  char name[NAME_MAX];
  if (open_place(journal, step, &place) < 0) return -1;
  snprintf(name, sizeof name, ".llm-do-kept-%s-%u-%s", journal->layer->id, journal->number, number);
  if (close_with(place.directory, rename_with(stage, number, place.directory, name, RENAME_NOREPLACE)) < 0) return -1;
  journal->kept++;
  fprintf(stderr, "%s/%s was written after it was applied, so it is kept, as %s in the same directory\n", journal->layer->zone[step->zone].source, step->path, name);
  return 0;
}

static int keep_what_was_written(struct journal *journal, char failed[PATH_MAX]) {
  for (size_t i = 0; i < journal->steps; i++) {
    const struct step *step = &journal->step[i];
    number_name name;
    name_of(step, name);
    if (step->kind != STEP_NEW && step->kind != STEP_EXCHANGE) continue;
    copy_text(failed, PATH_MAX, step->path);
    int stage = journal_stage(journal, step->zone);
    int written = stage < 0 ? -1 : was_written(journal, stage, name, step);
    if (written < 0 || (written > 0 && keep(journal, stage, name, step) < 0)) return -1;
  }
  return journal->kept ? sync_zones(journal) : 0;
}

static int forget(struct journal *journal) {
  char name[24];
  directory_name(journal->number, name);
  /* The journal goes first: without one there is nothing to take back, only to remove, and a half-removed stage does not look like a step. */
  if ((unlinkat(journal->directory, TAKEN_BACK, 0) < 0 && errno != ENOENT) || fsync(journal->directory) < 0) return -1;
  return remove_stages(journal) < 0 ? -1 : remove_tree(journal->layer->fd, name);
}

static int has_file(const struct journal *journal, const char *name) {
  if (faccessat(journal->directory, name, F_OK, 0) == 0) return 1;
  return errno == ENOENT ? 0 : -1;
}

static int fill_stages(struct journal *journal) {
  if (remove_stages(journal) < 0) return -1;
  if (copy_given_back(journal, 0) == 0 && sync_zones(journal) == 0) return 0;
  int error = errno;
  (void)remove_stages(journal); /* the disk is full; what stays is removed by the next verb */
  errno = error;
  return -1;
}

/* Only for an apply that is done: from its name on the stages are complete. */
static int begin_undo(struct journal *journal) {
  int is_applied = has_file(journal, APPLIED);
  if (is_applied <= 0) return is_applied;
  return fill_stages(journal) < 0 ? -1 : name_file(journal, APPLIED, UNFINISHED);
}

static int take_back_steps(struct journal *journal, char failed[PATH_MAX]) {
  for (size_t i = journal->steps; i-- > 0;) {
    copy_text(failed, PATH_MAX, journal->step[i].path);
    if (take_back_step(journal, &journal->step[i]) < 0) return -1;
  }
  copy_text(failed, PATH_MAX, "");
  return sync_zones(journal) < 0 || note_all(journal) < 0 ? -1 : name_file(journal, UNFINISHED, TAKEN_BACK);
}

int journal_take_back(struct journal *journal, char failed[PATH_MAX]) {
  /* Elsewhere nothing would be found under the numbers, which looks like a step that was not taken. */
  if (journal->elsewhere) {
    snprintf(failed, PATH_MAX, "%s is behind another mount than it was then", journal->elsewhere);
    return errno = ESTALE, -1;
  }
  copy_text(failed, PATH_MAX, "what was taken out");
  if (begin_undo(journal) < 0) return -1;
  int is_there = has_file(journal, UNFINISHED);
  if (is_there < 0 || (is_there && take_back_steps(journal, failed) < 0)) return -1;
  int is_back = has_file(journal, TAKEN_BACK);
  if (is_back < 0 || (is_back && keep_what_was_written(journal, failed) < 0)) return -1;
  copy_text(failed, PATH_MAX, "");
  return forget(journal);
}

/* ---- what has changed since ---- */

static int would_finish_repository(const struct step *step, const struct place *place) {
  int parts = step->is_known ? 0 : repository_parts_in(place->directory);
  return parts < 0 ? -1 : repository_is((unsigned)parts | repository_part(place->name));
}

static int step_has_changed(const struct step *step, const struct place *place, const struct timespec *done) {
  ino_t there;
  struct stat status;
  if (inode_at(place->directory, place->name, &there) < 0) return -1;
  if (step->kind == STEP_REMOVE) return there != 0 ? 1 : would_finish_repository(step, place);
  if (step->kind == STEP_MODE) {
    if (fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0) return 1;
    return status.st_ino != step->was || (status.st_mode & 07777) != step->mode;
  }
  return there != step->made ? 1 : tree_is_newer(place->directory, place->name, done);
}

int journal_find_changed(const struct journal *journal, char failed[PATH_MAX]) {
  int changed = 0;
  for (size_t i = 0; i < journal->steps && changed == 0; i++) {
    struct place place;
    copy_text(failed, PATH_MAX, journal->step[i].path);
    if (open_place(journal, &journal->step[i], &place) < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 1 : -1;
    changed = step_has_changed(&journal->step[i], &place, &journal->done);
    close(place.directory);
  }
  return changed;
}

int journal_tidy(struct journal *journal) { return remove_stages(journal); }

void journal_free(struct journal *journal) {
  if (journal->directory >= 0) close(journal->directory);
  for (size_t i = 0; journal->stage && i < journal->layer->zones; i++)
    close_with(journal->stage[i].fd, 0);
  free(journal->stage);
  free(journal->step);
}
