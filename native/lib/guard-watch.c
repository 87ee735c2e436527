/* The prompt part of the guard: inotify on directories in which something protected could be made. */
#include "lib/guard.h"

#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BENEATH (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH)

/* Directories beyond these are left to the walks. */
#define WATCHES_MAX 1024
/* Below a zone's root new directories are watched, too, as `git clone` and `git init NAME` make them: so many. */
#define NEW_WATCHES_MAX 128
/* They are looked for among so many entries of the root. Deadlines and limits wait meanwhile, and a directory can hold a million names. */
#define NEW_ENTRIES_MAX 8192

/* A user has few inotify instances (128), and the kernel takes some ten milliseconds to close one. So a command has none for a time that most
 * are over by; what they made the sweep finds. Then there is one look at everything, which takes less than a millisecond in small zones. */
#define LATE_NS 20000000ull
#define LATE_DIRECTORIES_MAX 128

#define FIRST_WALK_NS 1000000000ull
#define LEAST_PAUSE_NS 2000000000ull
/* A walk may take one part in so many of a processor's time, and holds up deadlines and limits no longer than this. */
#define WALK_SHARE 50
#define WALK_PIECE_NS 5000000ull

struct guard_watch {
  int id;
  size_t zone;
  const char *path;
  int in_tree; /* a `.git` may be made here */
};

/* ---- watches ---- */

static int has_watch(const struct guard *guard, int id) {
  for (size_t i = 0; i < guard->watches; i++)
    if (guard->watch[i].id == id) return 1;
  return 0;
}

/* Through the descriptor: a path could lead somewhere else by now. */
static int watch_descriptor(const struct guard *guard, int fd) {
  return inotify_add_watch(guard->events, fd_path(fd).text, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

/* 1 = it is watched now and was not before. */
static int add_watch(struct guard *guard, size_t zone, const char *path, int in_tree) {
  if (guard->events < 0 || guard->watches == WATCHES_MAX) return 0;
  int fd = sys_openat2(guard->zone[zone].fd, path[0] ? path : ".", O_PATH | O_DIRECTORY, BENEATH);
  int id = fd < 0 ? -1 : watch_descriptor(guard, fd);
  if (fd >= 0) close(fd);
  if (id < 0 || has_watch(guard, id)) return 0;
  struct guard_watch watch = {id, zone, arena_copy(&guard->arena, path, strlen(path)), in_tree};
  return watch.path && append(guard->watch, guard->watches, &watch) == 0;
}

/* The deepest directory on the way to a missing name: the next step of the way is made there. */
static int watch_way(struct guard *guard, size_t zone, const char *name) {
  char path[PATH_MAX];
  struct stat status;
  copy_text(path, sizeof path, name);
  for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
    *slash = 0;
    if (fstatat(guard->zone[zone].fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)) return add_watch(guard, zone, path, 0);
  }
  return 0; /* the root, which is watched anyway */
}

static int watch_ways(struct guard *guard) {
  int added = 0;
  for (size_t zone = 0; zone < guard->zones; zone++)
    for (size_t i = 0; i < guard->zone[zone].names; i++)
      if (strchr(guard->zone[zone].name[i].path, '/') && !root_names_lack(&guard->zone[zone].root, guard->zone[zone].name[i].path)) added |= watch_way(guard, zone, guard->zone[zone].name[i].path);
  return added;
}

/* A program of the host that saves a hidden file puts another one in its place. */
static void watch_hidden(struct guard *guard, size_t zone) {
  char path[PATH_MAX];
  for (size_t i = 0; i < guard->zone[zone].covers; i++) {
    if (!guard->zone[zone].cover[i].hidden) continue;
    copy_text(path, sizeof path, guard->zone[zone].cover[i].path);
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0, add_watch(guard, zone, path, 1);
  }
}

static int is_guarded(const struct guard_zone *zone) { return zone->fd >= 0 && (zone->has_git || zone->names > 0 || zone->hide.patterns > 0); }

static void begin_watch(struct guard *guard) {
  guard->is_late = 0;
  guard->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  guard->unwatched = guard->events < 0;
  for (size_t i = 0; i < guard->zones; i++)
    if (is_guarded(&guard->zone[i])) add_watch(guard, i, "", guard->zone[i].has_git || guard->zone[i].hide.patterns > 0);
  watch_ways(guard);
  for (size_t i = 0; i < guard->zones; i++) watch_hidden(guard, i);
}

/* A file that the host puts in the place of a hidden one is readable until it is seen. Only events tell that git has tried to change a
 * configuration. And to look through a large zone takes long. */
static int needs_events(const struct guard_zone *zone) {
  return zone->hide.patterns > 0 || zone->repositories > 0 || zone->listed > LATE_DIRECTORIES_MAX || zone->tree.directories > LATE_DIRECTORIES_MAX;
}

void guard_watch(struct guard *guard, uint64_t now_ns) {
  int is_needed = 0, is_early = 0;
  for (size_t i = 0; i < guard->zones; i++) is_needed |= is_guarded(&guard->zone[i]), is_early |= needs_events(&guard->zone[i]);
  guard->walk.zone = -1;
  if (!is_needed) return;
  guard->is_late = !is_early;
  /* Names, too, are looked for by time: the kernel may have no watch left for us. */
  guard->next_walk_ns = now_ns + (is_early ? FIRST_WALK_NS : LATE_NS);
  if (is_early) begin_watch(guard);
}

void guard_on_start(struct guard *guard, uint64_t now_ns) {
  if (guard->is_late) guard->next_walk_ns = now_ns + LATE_NS;
}

/* ---- looks ---- */

static int note(struct guard *guard, const struct guard_zone *zone, const char *path) {
  if (guard->seen_zone) return 1;
  guard->seen_zone = zone;
  copy_text(guard->seen_path, sizeof guard->seen_path, path);
  guard_host_path(zone, path, guard->seen, sizeof guard->seen);
  return 1;
}

static int is_there(struct guard *guard, const struct guard_zone *zone, const char *path) {
  char at[PATH_MAX];
  enum look look = guard_look_at_name(zone, path, at);
  return (look == LOOK_FOUND || look == LOOK_LINK) && note(guard, zone, at); /* what fails now fails in the sweep */
}

static int is_replaced(struct guard *guard, const struct guard_zone *zone, const struct guard_cover *cover) {
  char at[PATH_MAX];
  if (cover->hidden) return 0;
  enum look look = guard_look_at_cover(zone, cover, at);
  return (look == LOOK_FOUND || look == LOOK_LINK) && note(guard, zone, at);
}

static int is_known(const struct guard_zone *zone, const char *path) {
  for (size_t i = 0; i < zone->repositories; i++)
    if (strcmp(zone->repository[i].path, path) == 0) return 1;
  return 0;
}

/* A link in the place of the directory is none: what it leads to has another name. */
static int has_new_entry(struct guard *guard, const struct guard_watch *watch, const char *system) {
  const struct guard_zone *zone = &guard->zone[watch->zone];
  char path[PATH_MAX], at[PATH_MAX];
  if (!guard_has(zone, system)) return 0;
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", watch->path, watch->path[0] ? "/" : "", system) >= sizeof path) return 0;
  if (is_known(zone, path)) return 0;
  enum look look = guard_look_at_name(zone, path, at);
  return (look == LOOK_FOUND || look == LOOK_LINK) && strcmp(at, path) == 0 && note(guard, zone, at);
}

static int has_become_bare(struct guard *guard, const struct guard_watch *watch) {
  const struct guard_zone *zone = &guard->zone[watch->zone];
  if (!guard_has(zone, REPOSITORY_SYSTEM[0].name) || is_known(zone, watch->path)) return 0;
  int directory = sys_openat2(zone->fd, watch->path[0] ? watch->path : ".", O_PATH | O_DIRECTORY, BENEATH);
  int parts = directory < 0 ? -1 : repository_parts_in(directory);
  return close_with(directory, parts > 0 && repository_is((unsigned)parts) && note(guard, zone, watch->path));
}

static int has_new_repository_at(struct guard *guard, const struct guard_watch *watch) {
  for (int i = 0; i < REPOSITORY_SYSTEMS; i++)
    if (watch->in_tree && has_new_entry(guard, watch, REPOSITORY_SYSTEM[i].name)) return 1;
  return watch->in_tree && has_become_bare(guard, watch);
}

/* Everything that is watched, once. */
static int look_at_all(struct guard *guard) {
  for (size_t zone = 0; zone < guard->zones; zone++)
    for (size_t i = 0; i < guard->zone[zone].names; i++)
      if (!root_names_lack(&guard->zone[zone].root, guard->zone[zone].name[i].path) && is_there(guard, &guard->zone[zone], guard->zone[zone].name[i].path)) return 1;
  for (size_t i = 0; i < guard->watches; i++)
    if (has_new_repository_at(guard, &guard->watch[i])) return 1;
  for (size_t zone = 0; zone < guard->zones; zone++)
    for (size_t i = 0; i < guard->zone[zone].covers; i++)
      if (is_replaced(guard, &guard->zone[zone], &guard->zone[zone].cover[i])) return 1;
  return 0;
}

/* A directory may have been filled before it was watched, and a look is worth nothing before the watch. */
static int lookup_all(struct guard *guard) {
  for (size_t zone = 0; zone < guard->zones; zone++)
    if (guard->zone[zone].names > 0) root_names_read(&guard->zone[zone].root, guard->zone[zone].fd);
  while (watch_ways(guard)) continue;
  return look_at_all(guard);
}

/* ---- events ---- */

static int is_step_of(const char *path, const char *word) {
  size_t length = strlen(word);
  for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
    if (strncmp(at, word, length) == 0 && (at[length] == '/' || at[length] == 0)) return 1;
  return 0;
}

static int concerns_repositories(const char *name) { return repository_system(name) || repository_part(name); }

static int is_in_place_of_cover(const struct guard_zone *zone, const char *directory, const char *name) {
  size_t length = strlen(directory);
  for (size_t i = 0; i < zone->covers; i++) {
    const char *path = zone->cover[i].path;
    if (strncmp(path, directory, length) == 0 && (length == 0 || path[length] == '/') && strcmp(path + length + (length > 0), name) == 0) return 1;
  }
  return 0;
}

static int is_interesting(const struct guard_zone *zone, const char *directory, const char *name) {
  if ((zone->has_git && concerns_repositories(name)) || is_in_place_of_cover(zone, directory, name)) return 1;
  for (size_t i = 0; i < zone->names; i++)
    if (is_step_of(zone->name[i].path, name)) return 1;
  return 0;
}

static const struct guard_watch *watch_of(const struct guard *guard, int id) {
  for (size_t i = 0; i < guard->watches; i++)
    if (guard->watch[i].id == id) return &guard->watch[i];
  return NULL;
}

static int watch_new_directory(struct guard *guard, struct guard_watch watch, const char *name) {
  char path[PATH_MAX];
  if (!watch.in_tree || guard->watches >= NEW_WATCHES_MAX) return 0;
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", watch.path, watch.path[0] ? "/" : "", name) >= sizeof path) return 0;
  int is_new = add_watch(guard, watch.zone, path, 1);
  guard_hide_below(guard, &guard->zone[watch.zone], path);
  return is_new;
}

/* At the root, from before the watch began. */
static void watch_new_directories(struct guard *guard, size_t index) {
  const struct guard_zone *zone = &guard->zone[index];
  DIR *listing = zone->fd < 0 || !zone->has_git || !zone->root.is_known ? NULL : entries_open(zone->fd);
  if (!listing) return; /* the walk finds what is made in them */
  struct dirent *entry;
  for (int left = NEW_ENTRIES_MAX; left > 0 && (entry = readdir(listing)); left--)
    if (entry->d_type == DT_DIR && root_names_lack(&zone->root, entry->d_name)) (void)watch_new_directory(guard, (struct guard_watch){.zone = index, .path = "", .in_tree = 1}, entry->d_name);
  closedir(listing);
}

/* 1 = something has changed that is worth a look. */
static int on_event(struct guard *guard, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) return guard->next_walk_ns = 1, 1; /* a walk at once */
  const struct guard_watch *watch = event->len ? watch_of(guard, event->wd) : NULL;
  if (!watch) return 0;
  if (!watch->in_tree && strcmp(event->name, "config.lock") == 0) guard->config_locked = 1;
  guard_hide_entry(guard, &guard->zone[watch->zone], watch->path, event->name);
  int is_new = (event->mask & IN_ISDIR) && watch_new_directory(guard, *watch, event->name);
  return is_new || is_interesting(&guard->zone[watch->zone], watch->path, event->name);
}

/* 1 = something has changed that is worth a look. */
static int read_events(struct guard *guard) {
  static char room[32 << 10] __attribute__((aligned(64)));
  int must_lookup = 0;
  for (;;) {
    ssize_t got = guard->events < 0 ? 0 : read(guard->events, room, sizeof room);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return must_lookup;
    for (ssize_t at = 0; at < got;) {
      const struct inotify_event *event = (const struct inotify_event *)(room + at);
      must_lookup |= on_event(guard, event);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
}

int guard_on_events(struct guard *guard) { return read_events(guard) && lookup_all(guard); }

/* So many wait for the kernel at a time, of all runs of a user. */
#define LEFT_MAX 8

/* The names of sockets are the places: one is free again when the kernel has closed what was left with it. Others can take them all, and
 * make these runs wait. 0, or -1: none is free. */
static int take_place(int socket) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  for (unsigned i = 0; i < LEFT_MAX; i++) {
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "llm-do watch %u %u", (unsigned)geteuid(), ((unsigned)getpid() + i) % LEFT_MAX);
    if (bind(socket, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0) return 0;
  }
  return -1;
}

/*
 * A process that closes an inotify descriptor, or ends with one, waits until no processor reads its watches any more: some ten
 * milliseconds. So this one goes into a message to a socket that only this message holds. The kernel finds that no process can receive it
 * and closes both later (unix(7), garbage collection). But it closes one after the other, and each counts for the user until then: where
 * several wait already, this process waits for its own, next to all the others that do. So it does where the kernel closes them
 * immediately, or a message cannot be sent.
 */
static void leave_to_kernel(int fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
    close(fd);
    return;
  }
  if (take_place(ends[1]) == 0) (void)message_send(ends[0], "", 1, (int[]){fd, ends[1]}, 2);
  close(fd);
  close(ends[1]);
  close(ends[0]); /* the last: it starts the search, which must find none of our descriptors */
}

void guard_on_end(struct guard *guard) {
  read_events(guard);
  if (guard->events >= 0) leave_to_kernel(guard->events);
  guard->events = -1;
}

/* ---- walks ---- */

/* The next zone that is looked through; 0 = there is none after this one. */
static int begin_next_walk(struct guard *guard) {
  for (walk_free(&guard->walk); guard->walked < guard->zones; guard->walked++) {
    const struct guard_zone *zone = &guard->zone[guard->walked];
    if (zone->fd < 0 || (!zone->has_git && !zone->hide.patterns)) continue;
    guard->walk = (struct walk){.zone = zone->fd, .for_git = zone->has_git, .hide = zone->hide.patterns ? &zone->hide : NULL, .known = &zone->tree};
    return 1;
  }
  guard->walked = 0;
  return 0;
}

static int has_new_repository(struct guard *guard) {
  struct guard_zone *zone = &guard->zone[guard->walked];
  guard_hide_late(guard, zone, &guard->walk);
  for (size_t i = 0; i < guard->walk.count; i++)
    if (zone->has_git && guard->walk.find[i].kind != FIND_HIDDEN && guard_is_new(zone, &guard->walk.find[i])) return note(guard, zone, guard->walk.find[i].path);
  return 0;
}

/* 1 = there was an attempt. What cannot be looked through now, the sweep at the end explains. */
static int walk_a_piece(struct guard *guard, uint64_t now, uint64_t *least_pause) {
  *least_pause = 0;
  if (guard->walk.zone < 0 && !begin_next_walk(guard)) return *least_pause = LEAST_PAUSE_NS, 0;
  struct guard_zone *zone = &guard->zone[guard->walked];
  int done = walk_some(&guard->walk, now + WALK_PIECE_NS);
  if (done < 0 && zone->hide.patterns) (void)guard_hide_fail(guard, zone, guard->walk.at);
  if (done > 0) return has_new_repository(guard);
  int found = has_new_repository(guard);
  guard->walked++;
  if (!begin_next_walk(guard)) *least_pause = LEAST_PAUSE_NS;
  return found;
}

int guard_on_time(struct guard *guard) {
  uint64_t before = now_ns(), least = LEAST_PAUSE_NS;
  if (!guard->next_walk_ns || before < guard->next_walk_ns) return 0;
  int is_first = guard->is_late;
  if (is_first) begin_watch(guard);
  for (size_t i = 0; is_first && i < guard->zones; i++) watch_new_directories(guard, i);
  int found = lookup_all(guard) || walk_a_piece(guard, before, &least);
  if (is_first && least) least = FIRST_WALK_NS;
  uint64_t after = now_ns(), pause = (after - before) * WALK_SHARE;
  guard->next_walk_ns = after + (found || pause > least ? pause : least);
  return found;
}
