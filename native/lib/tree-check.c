/* Asks for the times of everything in an index, on several processors: that is most of what a look through an unchanged zone costs. */
#include "lib/tree-index.h"

#include "lib/files.h"
#include "lib/syscalls.h"
#include "lib/tree-question.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BENEATH (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)

/* Fewer directories and files are asked for in the time that a thread takes. */
#define THREADED_MIN 1024
#define THREADS_MAX 4
/* Directories that a thread takes at a time: one whose processor is busy with something else holds up few. */
#define PIECE 32

struct check {
  const struct tree_index *index;
  int zone, with_files;
  uint32_t *above; /* of each directory, the one that holds it */
  uint8_t *same;
  const uint8_t *only; /* those that are to be looked at; NULL = all are */
  tree_first *first;
  void *of;
  uint32_t next; /* piece; of all threads */
};

/* A path whose first `length` bytes lead to `above`. Threads that share a descriptor wait for each other. */
struct way {
  int zone;
  char path[PATH_MAX];
  uint32_t above;
  size_t length;
};

int tree_add_step(char path[PATH_MAX], size_t *length, const char *name) {
  size_t size = strlen(name), slash = *length > 0 && size > 0;
  if (*length + slash + size >= PATH_MAX) return errno = ENAMETOOLONG, -1;
  if (slash) path[(*length)++] = '/';
  memcpy(path + *length, name, size + 1);
  *length += size;
  return 0;
}

static const char *name_of(const struct check *check, uint32_t at) { return check->index->names + check->index->directory[at].name; }

static int go_to(const struct check *check, struct way *way, uint32_t above) {
  uint32_t step[PATH_MAX / 2]; /* more have no room in a path */
  size_t steps = 0;
  for (uint32_t at = above; at != 0; at = check->above[at]) {
    if (steps == sizeof step / sizeof *step) return -1;
    step[steps++] = at;
  }
  way->length = 0, way->above = UINT32_MAX;
  while (steps-- > 0)
    if (tree_add_step(way->path, &way->length, name_of(check, step[steps])) < 0) return -1;
  way->above = above;
  return 0;
}

static int step_to(const struct check *check, struct way *way, uint32_t at) {
  if (at == 0) return strcpy(way->path, "."), way->above = UINT32_MAX, 0;
  if (way->above != check->above[at] && go_to(check, way, check->above[at]) < 0) return -1;
  size_t length = way->length;
  return tree_add_step(way->path, &length, name_of(check, at));
}

static int has_same_files(const struct tree_index *index, const struct tree_directory *directory, int fd) {
  for (uint32_t i = directory->first_file; i < directory->first_file + directory->files; i++)
    if (!tree_is_same_file(fd, index->names + index->file[i].name, &index->file[i])) return 0;
  return 1;
}

static int is_same(const struct check *check, struct way *way, uint32_t at) {
  const struct tree_directory *directory = &check->index->directory[at];
  if (directory->state.inode == 0 || step_to(check, way, at) < 0) return 0;
  if (!check->first && (!check->with_files || directory->files == 0)) return tree_is_same(way->zone, way->path, check->index, &directory->state);
  int fd = sys_openat2(way->zone, way->path, O_PATH | O_DIRECTORY, BENEATH);
  int same = fd >= 0 && (!check->first || check->first(check->of, at, fd) == 0) && tree_is_same(fd, "", check->index, &directory->state) && (!check->with_files || has_same_files(check->index, directory, fd));
  return close_with(fd, same);
}

static void *check_pieces(void *of) {
  struct check *check = of;
  struct way way = {.above = UINT32_MAX, .zone = sys_openat2(check->zone, ".", O_PATH | O_DIRECTORY, BENEATH)};
  for (uint32_t from; (from = __atomic_fetch_add(&check->next, PIECE, __ATOMIC_RELAXED)) < check->index->directories;)
    for (uint32_t at = from; at < from + PIECE && at < check->index->directories; at++)
      if (!check->only || check->only[at]) check->same[at] = (uint8_t)(way.zone >= 0 && is_same(check, &way, at));
  if (way.zone >= 0) close(way.zone);
  return NULL;
}

static int threads_for(const struct check *check) {
  cpu_set_t processors;
  size_t looks = check->index->directories + (check->with_files ? (size_t)check->index->files : 0);
  if (looks < THREADED_MIN || sched_getaffinity(0, sizeof processors, &processors) < 0) return 1;
  return CPU_COUNT(&processors) < THREADS_MAX ? CPU_COUNT(&processors) : THREADS_MAX;
}

static void check_all(struct check *check) {
  pthread_t thread[THREADS_MAX];
  int threads = threads_for(check), started = 0;
  while (started + 1 < threads && pthread_create(&thread[started], NULL, check_pieces, check) == 0) started++;
  check_pieces(check);
  while (started > 0) (void)pthread_join(thread[--started], NULL);
}

static void find_above(struct check *check) {
  for (uint32_t at = 0; at < check->index->directories; at++)
    for (uint32_t i = 0; i < check->index->directory[at].count; i++) check->above[check->index->directory[at].first + i] = at;
}

/* 0, or -1 where memory is short. */
static int check_with(struct check *check) {
  check->above = check->same ? calloc(check->index->directories, sizeof *check->above) : NULL;
  if (!check->above) return -1;
  find_above(check), check_all(check);
  free(check->above);
  return 0;
}

uint8_t *tree_check_times(const struct tree_index *index, int zone, int with_files, tree_first *first, void *of) {
  struct check check = {.index = index, .zone = zone, .with_files = with_files, .same = malloc(index->directories), .first = first, .of = of};
  return check_with(&check) == 0 ? check.same : (free(check.same), NULL);
}

/* A file that has other names can change by one that the watcher does not see. */
static int check_linked(const struct tree_index *index, int zone, uint8_t *same) {
  struct check check = {.index = index, .zone = zone, .with_files = 1, .same = same};
  uint8_t *linked = malloc(index->directories);
  int found = 0, done = linked ? 0 : -1;
  for (uint32_t at = 0; linked && at < index->directories; at++) found |= linked[at] = same[at] && index->directory[at].is_linked;
  check.only = linked;
  if (found) done = check_with(&check);
  free(linked);
  return done;
}

static uint8_t *check_by_watcher(const struct tree_index *index, int zone, int with_files) {
  struct tree_answer answer;
  const struct tree_question question = {.generation = index->generation};
  int none = -1;
  if (!tree_ask(index->watcher, &question, &none, &answer)) return NULL;
  uint8_t *same = tree_just_listed(index);
  for (uint32_t i = 0; same && i < answer.count; i++)
    if (answer.changed[i] < index->directories) same[answer.changed[i]] = 0;
  return !same || !with_files || check_linked(index, zone, same) == 0 ? same : (free(same), NULL);
}

uint8_t *tree_check(const struct tree_index *index, int zone, int with_files) {
  uint8_t *same = index->generation ? check_by_watcher(index, zone, with_files) : NULL;
  return same ? same : tree_check_times(index, zone, with_files, NULL, NULL);
}
