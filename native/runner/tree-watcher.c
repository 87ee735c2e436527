#include "runner/tree-watcher.h"

#include "lib/clock.h"
#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/seal.h"
#include "lib/syscalls.h"
#include "lib/tree-index.h"
#include "lib/tree-question.h"
#include "lib/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000000ull
#define LOCK_FILE ".watcher-lock"
/* Each pins an inode of the kernel's memory, about a kilobyte, for each of its directories. */
#define ZONES_MAX 8
/* Of the watches that a user may have, all zones together take one of so many. */
#define WATCHES_SHARE 4
/* One that was asked for so lately is not given up for another zone: with many in turn none would ever be read. */
#define ZONE_KEPT_NS (10000 * MS)
/* A run has one for each of its large zones. */
#define CLIENTS_MAX 256
/* Without a question for so long the watches are given up. */
#define ZONE_IDLE_NS (300000 * MS)
/* A queue holds 16384 events (fs.inotify.max_queued_events). It is not read with each event: that would take a processor from the command. */
#define DRAIN_NS (100 * MS)
/* After a zone was given up because something changed about it, it is read again when the work for it has become a small share of the time. */
#define RELOAD_SHARE 20

#define DIRECTORY_EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

/* The process that places the watches leaves one for each directory of the index. */
struct placed {
  int watch; /* -1 = it has none */
  uint8_t has_changed;
};

struct zone {
  struct tree_question key;
  uint64_t generation; /* 0 = a free place */
  ino_t file;          /* the kept index that it was read from */
  int events, memory, places; /* inotify; the index; one `struct placed` for each directory */
  int loader;          /* a pidfd */
  int loaded;          /* pipe: gets a byte when the watches are there; -1 = they are */
  struct tree_index index;
  uint32_t *of_watch;  /* by the number of a watch: the directory in the index */
  size_t watches;
  uint32_t *has_changed; /* behind it: of each directory */
  uint32_t changed;    /* so many have */
  int has_pending;     /* events wait to be read, or may */
  uint64_t begun_ns, load_ns, asked_ns, read_ns;
};

struct watcher {
  char runs[PATH_MAX];
  int place, listener, owner, mounts;
  struct zone zone[ZONES_MAX];
  int client[CLIENTS_MAX];
  size_t clients;
  uint64_t generations, not_before_ns;
};

/* ---- a zone is read, by a separate process ---- */

struct load {
  int events, failed;
  struct placed *placed;
};

static int place_watch(void *of, uint32_t at, int directory) {
  struct load *load = of;
  load->placed[at].watch = inotify_add_watch(load->events, fd_path(directory).text, DIRECTORY_EVENTS | IN_ONLYDIR | IN_EXCL_UNLINK);
  if (load->placed[at].watch >= 0) return 0;
  load->failed = 1;
  return -1;
}

static size_t watches_max(void) {
  char text[32];
  (void)read_small(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", text, sizeof text);
  return strtoul(text, NULL, 10) / WATCHES_SHARE;
}

/* A client with the root of another zone would have that zone's index taken for this one's. */
static int is_root_of(const struct tree_question *key, int root, const struct tree_index *index) {
  struct stat status;
  return fstat(root, &status) == 0 && status.st_ino == key->inode && index->device == key->device && index->mount == key->mount;
}

/* Returns 0 with the memory filled. */
static int load(const struct zone *zone, int root, const char *runs, size_t watches) {
  struct tree_index index;
  tree_read_kept(&index, root, zone->key.hides, runs);
  if (!index.bytes || !is_root_of(&zone->key, root, &index) || watches + index.directories > watches_max()) return -1;
  size_t size = index.directories * sizeof(struct placed);
  if (write_all(zone->memory, index.bytes, index.size) < 0 || ftruncate(zone->places, (off_t)size) < 0) return -1;
  struct load load = {zone->events, 0, mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, zone->places, 0)};
  if (load.placed == MAP_FAILED) return -1;
  for (uint32_t at = 0; at < index.directories; at++) load.placed[at].watch = -1;
  uint8_t *same = tree_check_times(&index, root, index.has_files && geteuid() == 0, place_watch, &load);
  for (uint32_t at = 0; same && at < index.directories; at++) load.placed[at].has_changed = !same[at] && index.directory[at].state.inode != 0;
  return same && !load.failed ? 0 : -1;
}

static _Noreturn void be_loader(const struct watcher *watcher, const struct zone *zone, int root, int loaded) {
  size_t watches = 0;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t i = 0; i < ZONES_MAX; i++) watches += watcher->zone[i].watches;
  _exit(load(zone, root, watcher->runs, watches) == 0 && write(loaded, "", 1) == 1 ? 0 : 1);
}

/* ---- a zone ---- */

static int is_loading(const struct zone *zone) { return zone->loaded >= 0; }

static void drop(struct zone *zone) {
  if (zone->loader >= 0) (void)sys_pidfd_send_signal(zone->loader, SIGKILL);
  const int fds[] = {zone->events, zone->memory, zone->places, zone->loader, zone->loaded};
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
    if (fds[i] >= 0) close(fds[i]);
  if (zone->index.bytes) munmap(zone->index.bytes, zone->index.size);
  free(zone->of_watch);
  *zone = (struct zone){.events = -1, .memory = -1, .places = -1, .loader = -1, .loaded = -1};
}

/* Something about it is not certain any more. */
static void give_up(struct watcher *watcher, struct zone *zone) {
  uint64_t now = now_ns();
  watcher->not_before_ns = now + RELOAD_SHARE * (is_loading(zone) ? now - zone->begun_ns : zone->load_ns);
  drop(zone);
}

static void note_change(struct zone *zone, uint32_t at) {
  if (zone->has_changed[at] || zone->index.directory[at].state.inode == 0) return;
  zone->has_changed[at] = 1;
  zone->changed++;
}

/* 0, or -1: nothing is known about it. The event of a queue that ran over has no watch. */
static int on_event(struct zone *zone, const struct inotify_event *event) {
  uint32_t at = event->wd >= 0 && (size_t)event->wd < zone->watches ? zone->of_watch[event->wd] : UINT32_MAX;
  if (at == UINT32_MAX) return -1;
  /* Only root's index has the files, and a directory hears of itself. */
  if ((event->mask & IN_ATTRIB) && event->len && !zone->index.has_files) return 0;
  note_change(zone, at);
  return 0;
}

/* All that happened before, and no more: it may come as fast as it is read. 0, or -1 as above. */
static int drain(struct zone *zone) {
  static char room[64 << 10] __attribute__((aligned(64)));
  int left = 0;
  if (ioctl(zone->events, FIONREAD, &left) < 0) return -1;
  zone->has_pending = left > 0; /* more will come, and waits until it is due */
  zone->read_ns = now_ns();
  while (left > 0) {
    ssize_t got = read(zone->events, room, sizeof room);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    left -= (int)got;
    for (ssize_t at = 0; at < got;) {
      const struct inotify_event *event = (const struct inotify_event *)(room + at);
      if (on_event(zone, event) < 0) return -1;
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  return 0;
}

static size_t most_watches(const struct placed *placed, uint32_t count) {
  int most = -1;
  for (uint32_t at = 0; at < count; at++)
    if (placed[at].watch > most) most = placed[at].watch;
  return (size_t)(most + 1);
}

/* Two directories with one watch would be one directory at two places. */
static int take_places(struct zone *zone, const struct placed *placed) {
  uint32_t count = zone->index.directories;
  zone->watches = most_watches(placed, count);
  zone->of_watch = calloc(zone->watches + count, sizeof *zone->of_watch);
  if (!zone->of_watch) return -1;
  zone->has_changed = zone->of_watch + zone->watches;
  memset(zone->of_watch, 0xff, zone->watches * sizeof *zone->of_watch);
  for (uint32_t at = 0; at < count; at++) {
    if (placed[at].has_changed || (placed[at].watch < 0 && zone->index.directory[at].state.inode)) note_change(zone, at);
    if (placed[at].watch < 0) continue;
    if (zone->of_watch[placed[at].watch] != UINT32_MAX) return -1;
    zone->of_watch[placed[at].watch] = at;
  }
  return 0;
}

static int take_memory(struct zone *zone) {
  struct stat status;
  if (fcntl(zone->memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 || fstat(zone->memory, &status) < 0) return -1;
  if (tree_map(&zone->index, zone->memory, (size_t)status.st_size) < 0) return -1;
  size_t size = zone->index.directories * sizeof(struct placed);
  struct placed *placed = mmap(NULL, size, PROT_READ, MAP_SHARED, zone->places, 0);
  if (placed == MAP_FAILED) return -1;
  int done = take_places(zone, placed);
  munmap(placed, size);
  return done;
}

static void on_loaded(struct watcher *watcher, struct zone *zone) {
  char byte;
  if (read(zone->loaded, &byte, 1) != 1 || take_memory(zone) < 0) return give_up(watcher, zone);
  zone->load_ns = now_ns() - zone->begun_ns;
  close(zone->loaded), close(zone->loader), close(zone->places);
  zone->loaded = zone->loader = zone->places = -1;
}

/* ---- questions ---- */

static ino_t file_of(const struct watcher *watcher, const struct tree_question *key) {
  char name[64];
  struct stat status;
  tree_name(name, sizeof name, key->device, key->inode, key->hides);
  return fstatat(watcher->place, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

static struct zone *find_zone(struct watcher *watcher, const struct tree_question *key) {
  for (struct zone *zone = watcher->zone; zone < watcher->zone + ZONES_MAX; zone++) {
    if (!zone->generation) continue;
    if (key->generation ? zone->generation == key->generation : zone->key.device == key->device && zone->key.inode == key->inode && zone->key.mount == key->mount && zone->key.hides == key->hides) return zone;
  }
  return NULL;
}

/* A free one, or that which was asked for least lately; NULL = all are in use. */
static struct zone *place_for_zone(struct watcher *watcher, uint64_t now) {
  struct zone *oldest = watcher->zone;
  for (struct zone *zone = watcher->zone; zone < watcher->zone + ZONES_MAX; zone++) {
    if (!zone->generation) return zone;
    if (zone->asked_ns < oldest->asked_ns) oldest = zone;
  }
  if (now < oldest->asked_ns + ZONE_KEPT_NS) return NULL;
  drop(oldest);
  return oldest;
}

/* We hear of mounts in our own namespace only. */
static int has_our_mounts(int client) {
  char path[64];
  struct ucred peer;
  struct stat theirs, ours;
  socklen_t size = sizeof peer;
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return 0;
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", peer.pid);
  return stat(path, &theirs) == 0 && stat("/proc/self/ns/mnt", &ours) == 0 && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

static int begin_load(struct watcher *watcher, struct zone *zone, int root) {
  int ends[2];
  zone->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  zone->memory = memfd_create("index", MFD_CLOEXEC | MFD_ALLOW_SEALING), zone->places = memfd_create("places", MFD_CLOEXEC);
  if (zone->events < 0 || zone->memory < 0 || zone->places < 0 || pipe2(ends, O_CLOEXEC) < 0) return -1;
  zone->loaded = ends[0];
  pid_t loader = fork();
  if (loader == 0) be_loader(watcher, zone, root, ends[1]);
  close(ends[1]);
  zone->loader = loader < 0 ? -1 : sys_pidfd_open(loader); /* the kernel reaps it, and may give its number to another process */
  return zone->loader < 0 ? -1 : 0;
}

static void add_zone(struct watcher *watcher, const struct tree_question *key, int client, int root) {
  ino_t file = file_of(watcher, key);
  uint64_t now = now_ns();
  if (!file || now < watcher->not_before_ns || !has_our_mounts(client)) return;
  struct zone *zone = place_for_zone(watcher, now);
  if (!zone) return;
  *zone = (struct zone){.key = *key, .generation = ++watcher->generations, .file = file, .events = -1, .memory = -1, .places = -1, .loader = -1, .loaded = -1, .begun_ns = now, .asked_ns = now};
  if (begin_load(watcher, zone, root) < 0) drop(zone);
}

/* A run has made a new index: so many have changed, or it could not use this one, which another kind of run has made. */
static int is_outdated(const struct watcher *watcher, const struct zone *zone) { return zone->changed > TREE_CHANGED_MAX || zone->file != file_of(watcher, &zone->key); }

static void give_up_all(struct watcher *watcher) {
  for (struct zone *zone = watcher->zone; zone < watcher->zone + ZONES_MAX; zone++)
    if (zone->generation) give_up(watcher, zone);
}

/* One for which there is an answer; NULL = there is none. */
static struct zone *zone_for(struct watcher *watcher, const struct tree_question *question) {
  struct pollfd mounts = {watcher->mounts, POLLPRI, 0};
  if (poll(&mounts, 1, 0) != 0) give_up_all(watcher);
  struct zone *zone = find_zone(watcher, question);
  if (!zone || is_loading(zone)) return NULL;
  if (drain(zone) < 0 || (!question->generation && is_outdated(watcher, zone))) return give_up(watcher, zone), NULL;
  return zone->changed <= TREE_CHANGED_MAX ? zone : NULL;
}

static void fill(struct tree_answer *answer, const struct zone *zone) {
  answer->generation = zone->generation;
  answer->size = zone->index.size;
  for (uint32_t at = 0; answer->count < zone->changed; at++)
    if (zone->has_changed[at]) answer->changed[answer->count++] = at;
}

static void answer(struct watcher *watcher, int client, const struct tree_question *question, int root) {
  static struct tree_answer answer;
  struct zone *zone = zone_for(watcher, question);
  answer.generation = answer.count = 0;
  if (zone) fill(&answer, zone), zone->asked_ns = now_ns();
  (void)message_send(client, &answer, offsetof(struct tree_answer, changed) + answer.count * sizeof *answer.changed, zone ? &zone->memory : NULL, zone && !question->generation);
  if (!zone && root >= 0 && !find_zone(watcher, question)) add_zone(watcher, question, client, root);
}

static void on_question(struct watcher *watcher, size_t which) {
  struct tree_question question;
  int given[MESSAGE_DESCRIPTORS_MAX], count = 0;
  ssize_t got = message_receive(watcher->client[which], &question, sizeof question, MSG_DONTWAIT, given, &count);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == sizeof question) answer(watcher, watcher->client[which], &question, count == 1 ? given[0] : -1);
  for (int i = 0; i < count; i++) close(given[i]);
  if (got == sizeof question) return;
  close(watcher->client[which]);
  watcher->client[which] = watcher->client[--watcher->clients];
}

/* -1 without a descriptor for it: that would come again at once, as long as there are so many clients. */
static int on_client(struct watcher *watcher) {
  int client = accept4(watcher->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -1;
  if (watcher->clients == CLIENTS_MAX || !peer_is_same_user(client)) close(client);
  else watcher->client[watcher->clients++] = client;
  return 0;
}

/* ---- its life ---- */

/* Events are read a while after the first of them. Returns when something is due, UINT64_MAX = nothing is. */
static uint64_t look_after(struct watcher *watcher, struct zone *zone, uint64_t now) {
  uint64_t end = zone->asked_ns + ZONE_IDLE_NS;
  if (!zone->generation) return UINT64_MAX;
  if (end <= now) return drop(zone), UINT64_MAX;
  if (zone->has_pending && zone->read_ns + DRAIN_NS <= now && drain(zone) < 0) return give_up(watcher, zone), UINT64_MAX;
  uint64_t due = zone->has_pending ? zone->read_ns + DRAIN_NS : end;
  return due < end ? due : end;
}

static int patience(struct watcher *watcher) {
  uint64_t now = now_ns(), due = UINT64_MAX;
  for (struct zone *zone = watcher->zone; zone < watcher->zone + ZONES_MAX; zone++) {
    uint64_t at = look_after(watcher, zone, now);
    if (at < due) due = at;
  }
  return due == UINT64_MAX ? -1 : (int)((due - now + MS - 1) / MS);
}

enum { OWNER, LISTENER, FIRST_ZONE, FIRST_CLIENT = FIRST_ZONE + ZONES_MAX };

/* The loader's pipe, or the events until the first of them. */
static struct pollfd source_of(const struct zone *zone) { return (struct pollfd){!zone->generation || (!is_loading(zone) && zone->has_pending) ? -1 : is_loading(zone) ? zone->loaded : zone->events, POLLIN, 0}; }

static void on_zone(struct watcher *watcher, struct zone *zone) {
  if (is_loading(zone)) return on_loaded(watcher, zone);
  zone->has_pending = 1;
  zone->read_ns = now_ns();
}

static void serve(struct watcher *watcher) {
  static struct pollfd watched[FIRST_CLIENT + CLIENTS_MAX];
  for (;;) {
    int wait = patience(watcher);
    size_t clients = watcher->clients;
    watched[OWNER] = (struct pollfd){watcher->owner, POLLIN, 0};
    watched[LISTENER] = (struct pollfd){watcher->listener, POLLIN, 0};
    for (size_t i = 0; i < ZONES_MAX; i++) watched[FIRST_ZONE + i] = source_of(&watcher->zone[i]);
    for (size_t i = 0; i < clients; i++) watched[FIRST_CLIENT + i] = (struct pollfd){watcher->client[i], POLLIN, 0};
    if (poll(watched, (nfds_t)(FIRST_CLIENT + clients), wait) < 0 && errno != EINTR) return;
    if (watched[OWNER].revents) return;
    for (size_t i = 0; i < ZONES_MAX; i++)
      if (watched[FIRST_ZONE + i].revents) on_zone(watcher, &watcher->zone[i]);
    for (size_t i = clients; i-- > 0;)
      if (watched[FIRST_CLIENT + i].revents) on_question(watcher, i);
    if (watched[LISTENER].revents && on_client(watcher) < 0) return;
  }
}

static int listen_in(int place) {
  struct sockaddr_un address = socket_address(place, WATCHER_SOCKET);
  (void)unlinkat(place, WATCHER_SOCKET, 0); /* of one that was killed */
  int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  umask(077);
  return listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, SOMAXCONN) == 0 ? listener : close_with(listener, -1);
}

/* One for each user. */
static int lock(int place) {
  int fd = openat(place, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? fd : close_with(fd, -1);
}

/* Of its host it keeps nothing but these. */
static int stand_apart(int place, int owner) {
  static struct sigaction standard = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC), from[] = {null, null, null, place, owner};
  for (int signal = 1; signal < _NSIG; signal++) sigaction(signal, &standard, NULL);
  sigaction(SIGPIPE, &ignore, NULL), sigaction(SIGCHLD, &ignore, NULL); /* the kernel reaps the loaders */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  (void)setsid();
  (void)prctl(PR_SET_NAME, "watcher");
  return null < 0 || chdir("/") < 0 ? -1 : place_descriptors(from, 5);
}

static _Noreturn void be_watcher(const char *own, int place, int owner) {
  static struct watcher watcher = {.place = 3, .owner = 4};
  if (stand_apart(place, owner) < 0 || lock(watcher.place) < 0) _exit(0);
  for (struct zone *zone = watcher.zone; zone < watcher.zone + ZONES_MAX; zone++) *zone = (struct zone){.events = -1, .memory = -1, .places = -1, .loader = -1, .loaded = -1};
  snprintf(watcher.runs, sizeof watcher.runs, "%s/runs", own);
  watcher.mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  watcher.listener = listen_in(watcher.place);
  if (watcher.mounts >= 0 && watcher.listener >= 0) serve(&watcher);
  (void)unlinkat(watcher.place, WATCHER_SOCKET, 0);
  _exit(0);
}

static int is_wanted(const char *own) {
  char path[PATH_MAX];
  return (size_t)snprintf(path, sizeof path, "%s/trees/" WATCHER_WANTED, own) < sizeof path && access(path, F_OK) == 0;
}

void tree_watcher_start(const char *own, int owner) {
  char runs[PATH_MAX];
  unsigned char secret[SECRET_BYTES];
  int place = is_wanted(own) && (size_t)snprintf(runs, sizeof runs, "%s/runs", own) < sizeof runs ? tree_open_place(runs, 0, secret) : -1;
  if (place >= 0 && unlinkat(place, WATCHER_WANTED, 0) == 0 && fork() == 0) be_watcher(own, place, owner);
  if (place >= 0) close(place);
}
