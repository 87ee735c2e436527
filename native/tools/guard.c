/*
 * guard: the guard (lib/guard.h) as a program, for backends that mount without the stager.
 *
 *   guard --plan [ID] < LAUNCH-FILE on descriptor 3   prints what is to be covered, in the order of mounting, as JSON
 *   guard [ID]                                        watches, prints {"attempt":PATH} at the first attempt; at the end of its
 *                                                     standard input sweeps, prints what was set aside and ends
 *
 * Of the launch file only the records zone, protect and git are read. Exit status 125 and a line on stderr where it gives up.
 */
#include "lib/guard.h"

#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/status.h"
#include "lib/json-text.h"
#include "lib/programs.h"
#include "lib/text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static _Noreturn void fail_step(const char *step, const char *path) {
  fprintf(stderr, "guard: %s: %s: %s\n", step, path, strerror(errno));
  exit(125);
}

static void read_launch_file(struct launchfile *file) {
  const char *problem = launchfile_read(LAUNCH_FILE_FD, file);
  if (problem) fail_step("launch file", *problem ? problem : "descriptor 3");
  close(LAUNCH_FILE_FD);
}

/* ---- the plan ---- */

static void print_cover(const struct guard_zone *zone, const struct guard_cover *cover, const char *mode, int *first) {
  if (S_ISLNK(cover->type)) errno = ELOOP, fail_step("protect", cover->path); /* a daemon would mount over what it leads to */
  printf("%s{\"zone\":", *first ? "" : ",");
  put_json(stdout, zone->target);
  printf(",\"path\":");
  put_json(stdout, cover->path);
  printf(",\"mode\":\"%s\",\"type\":\"%s\",\"dev\":%llu,\"ino\":\"%llu\"}", mode, S_ISDIR(cover->type) ? "directory" : "file",
         (unsigned long long)cover->identity.dev, (unsigned long long)cover->identity.ino);
  *first = 0;
}

/* Directories on the way are kept in their place, each once. */
static void print_way(const struct guard_zone *zone, size_t index, int *first) {
  char path[PATH_MAX];
  const struct guard_cover *cover = &zone->cover[index];
  for (const char *slash = strchr(cover->path, '/'); slash; slash = strchr(slash + 1, '/')) {
    size_t length = (size_t)(slash - cover->path);
    if (length >= sizeof path) return;
    memcpy(path, cover->path, length);
    path[length] = 0;
    int is_known = 0;
    for (size_t i = 0; i < index && !is_known; i++)
      is_known = is_at_or_below(zone->cover[i].path, path);
    struct stat status;
    struct guard_cover step = {.path = path, .type = S_IFDIR};
    char at[PATH_MAX];
    if (is_known) continue;
    if (look_at(zone->fd, path, at, &status) != LOOK_FOUND) errno = ESTALE, fail_step("protect", path);
    step.identity = (struct identity){status.st_dev, status.st_ino};
    print_cover(zone, &step, "rw", first);
  }
}

static void print_plan(const struct guard *guard) {
  int first = 1;
  printf("{\"covers\":[");
  for (size_t i = 0; i < guard->zones; i++)
    for (size_t j = 0; j < guard->zone[i].covers; j++) {
      const struct guard_cover *cover = &guard->zone[i].cover[j];
      print_way(&guard->zone[i], j, &first);
      print_cover(&guard->zone[i], cover, cover->writable ? "rw" : "ro", &first);
    }
  printf("],\"setIds\":%u,\"setId\":[", guard->set_ids);
  for (unsigned i = 0; i < guard->set_ids && i < GUARD_SET_ID_MAX; i++) {
    if (i) putchar(',');
    put_json(stdout, guard->set_id[i]);
  }
  puts("]}");
}

/* ---- the watch ---- */

static void report_attempt(const struct guard *guard) {
  printf("{\"attempt\":");
  put_json(stdout, guard->seen);
  puts("}");
  fflush(stdout);
}

static int patience(const struct guard *guard) {
  uint64_t now = now_ns();
  if (!guard->next_walk_ns) return -1;
  return guard->next_walk_ns > now ? (int)((guard->next_walk_ns - now) / 1000000 + 1) : 0;
}

/* Until the caller says, by closing our input, that nothing inside is left. */
static void watch_until_end(struct guard *guard) {
  char bytes[256];
  int reported = 0;
  for (;;) {
    struct pollfd watched[] = {{0, POLLIN, 0}, {reported ? -1 : guard->events, POLLIN, 0}};
    if (poll(watched, 2, reported ? -1 : patience(guard)) < 0 && errno != EINTR) fail_step("poll", "");
    if (!reported && ((watched[1].revents && guard_on_events(guard)) || guard_on_time(guard))) reported = 1, report_attempt(guard);
    if (!watched[0].revents) continue;
    ssize_t got = read(0, bytes, sizeof bytes);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

static void print_end(const struct guard *guard) {
  printf("{\"end\":true");
  status_put_guard(stdout, guard);
  puts("}");
}

int guard_main(int argc, char **argv) {
  static struct guard guard;
  struct launchfile file;
  int only_plan = argc > 1 && strcmp(argv[1], "--plan") == 0;
  const char *run = argc > 1 + only_plan ? argv[1 + only_plan] : "run";
  read_launch_file(&file);
  if (guard_prepare(&guard, &file) < 0) fail_step("protect", guard.failed);
  if (only_plan) {
    print_plan(&guard);
  } else {
    guard_watch(&guard, now_ns());
    puts("{\"watching\":true}");
    fflush(stdout);
    watch_until_end(&guard);
    guard_sweep(&guard, run);
    print_end(&guard);
  }
  return fflush(stdout) == 0 ? 0 : 125;
}
