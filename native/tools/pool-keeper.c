/*
 * pool: keeps warm sandboxes ready (runner/line.h), and tells about the keepers of this user.
 *
 *   pool keep POOLS NAME SIZE IDLE DIRECTORY   DIRECTORY where it is started, for people; descriptor 3 the launch file; IDLE seconds, 0 = no end
 *   pool status POOLS                 one JSON line a keeper
 *   pool stop POOLS [NAME...]         ends them, or those of these names; prints how many
 *   pool prune POOLS                  takes away what killed keepers left, prints how many there were
 *
 * Listing the keepers removes what killed ones left.
 *
 * Theory of operation. The keeper owns POOLS/NAME: a lock file `keeper`, the seal of the plan, and the sockets of the
 * sandboxes that are ready. It starts launchers, one at a time, and hears from each by a pipe: ready, taken, and at its end
 * gone. It is not on the way of a run: clients find the sockets by themselves, so a keeper that is dead or slow costs a
 * cold start and nothing else. It builds when there was no run for a moment, because building during a run makes that
 * run slower; only when hardly anything is left it does not wait. All launchers hold the end of one pipe: when the keeper is gone,
 * however, those that are not in use end.
 */
#include "lib/frames.h"
#include "lib/files.h"
#include "lib/passed-signals.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/run-record.h"
#include "lib/json-text.h"
#include "lib/programs.h"
#include "lib/text.h"
#include "runner/launch.h"
#include "runner/line.h"
#include "runner/tree-watcher.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define SIZE_MOST 64
/* Sandboxes that are being built, ready or in use. */
#define SANDBOXES_MAX 1024
#define MS 1000000ull
/* Without a run for this long, a pool is filled up. */
#define QUIET_NS (20 * MS)
/* After a sandbox could not be built; times the number of failures in a row. */
#define BACKOFF_NS (500 * MS)
#define FAILURES_MAX 5
#define LOSSES_SLOWED 6
/* A client that has claimed a sandbox connects at once; one that was killed in between never does. */
#define CLAIM_NS (2000 * MS)

enum state { FREE, BUILDING, READY, IN_USE };

struct sandbox {
  enum state state;
  pid_t pid;
  int socket;
  uint64_t missing; /* missing: when its socket was seen to be gone */
  char id[RUN_ID_MAX + 1];
  char line[2048];
  size_t used;
};

struct pool {
  int directory, lock, self; /* a pidfd */
  char own[4096], path[4096];
  struct launchfile plan;
  int size;
  uint64_t idle_ns;
  struct sandbox *sandbox[SANDBOXES_MAX];
  uint64_t last_use, next_try, next_look;
  int failures, losses, ever_ready; /* in a row: could not be built, or ended before a client used them */
  unsigned long count;
  char tag[32];
};

/* ---- what lies in the directory ---- */

static void remove_sockets(int directory) {
  DIR *entries = entries_open(directory);
  struct stat status;
  for (const char *name; entries && (name = entries_next(entries));)
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(status.st_mode)) unlinkat(directory, name, 0);
  if (entries) closedir(entries);
}

/* For clients, to compare it with that of their own plan: a link takes one call to read. */
static int show_seal(int directory, const struct launchfile *file) {
  struct entry check;
  if (unlinkat(directory, POOL_SEAL, 0) < 0 && errno != ENOENT) return -1;
  return launchfile_find(file, V_CHECK, &check) ? symlinkat(check.word[0], directory, POOL_SEAL) : 0;
}

static int write_lock(struct pool *pool, const char *directory) {
  struct entry entry;
  size_t size;
  FILE *out = text_begin();
  if (!out) return -1;
  record_put_number(out, "pid", getpid());
  record_put_number(out, "size", pool->size);
  record_put_number(out, "started", time(NULL));
  record_put(out, "profile", launchfile_find(&pool->plan, V_PROFILE, &entry) ? entry.word[0] : "");
  record_put(out, "directory", directory);
  const char *bytes = text_end(&size);
  return bytes && ftruncate(pool->lock, 0) == 0 && pwrite(pool->lock, bytes, size, 0) == (ssize_t)size ? 0 : -1;
}

/* ---- sandboxes ---- */

static int count_of(const struct pool *pool, enum state state) {
  int count = 0;
  for (int i = 0; i < SANDBOXES_MAX; i++) count += pool->sandbox[i] && pool->sandbox[i]->state == state;
  return count;
}

static struct sandbox *new_sandbox(struct pool *pool) {
  for (int i = 0; i < SANDBOXES_MAX; i++)
    if (!pool->sandbox[i]) return pool->sandbox[i] = calloc(1, sizeof **pool->sandbox);
  return NULL;
}

/* Launch removes its socket, unless it was killed. */
static void remove_socket_of(const struct pool *pool, const struct sandbox *sandbox) {
  char name[RUN_ID_MAX + 2];
  for (const char *first = ".rc"; *first; first++) {
    snprintf(name, sizeof name, "%c%s", *first, sandbox->id);
    unlinkat(pool->directory, name, 0);
  }
}

static void forget(struct pool *pool, struct sandbox *sandbox) {
  for (int i = 0; i < SANDBOXES_MAX; i++)
    if (pool->sandbox[i] == sandbox) pool->sandbox[i] = NULL;
  if (sandbox->socket >= 0) close(sandbox->socket);
  free(sandbox);
}

static int build_one(struct pool *pool) {
  int ends[2];
  struct sandbox *sandbox = new_sandbox(pool);
  if (!sandbox) return -1;
  snprintf(sandbox->id, sizeof sandbox->id, "%s%lx", pool->tag, pool->count++);
  sandbox->state = BUILDING;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return sandbox->socket = -1, forget(pool, sandbox), -1;
  sandbox->socket = ends[0];
  fcntl(sandbox->socket, F_SETFL, O_NONBLOCK);
  sandbox->pid = fork();
  if (sandbox->pid == 0) launch_warm(&(struct warm_call){&pool->plan, sandbox->id, pool->path, ends[1]});
  close(ends[1]);
  if (sandbox->pid > 0) return 0;
  forget(pool, sandbox);
  return -1;
}

/* For our parent: `ready ID`, or `failed` and launch's own words. A reader that is gone is fine. */
static void print_word(const char *what, const char *more) { dprintf(1, "%s %s\n", what, more); }

static _Noreturn void shut_down(struct pool *pool);

static void on_failure(struct pool *pool, const char *why) {
  pool->failures++;
  pool->next_try = now_ns() + BACKOFF_NS * (uint64_t)pool->failures;
  if (pool->ever_ready && pool->failures < FAILURES_MAX) return;
  print_word("failed", why[0] ? why : "{}");
  shut_down(pool);
}

/* The host's mounts have changed, or it was killed. Where that happens again and again, rebuilding must not take a whole processor. */
static void on_loss(struct pool *pool) {
  if (pool->losses < LOSSES_SLOWED) pool->losses++;
  pool->next_try = now_ns() + BACKOFF_NS * (uint64_t)pool->losses;
}

static void on_byte(struct pool *pool, struct sandbox *sandbox, char byte) {
  if (byte == WARM_IS_READY && sandbox->state == BUILDING) {
    sandbox->state = READY;
    pool->failures = 0;
    pool->ever_ready = 1;
    print_word("ready", sandbox->id);
  } else if (byte == WARM_IS_TAKEN && sandbox->state == READY) {
    sandbox->state = IN_USE;
    pool->last_use = now_ns();
    pool->losses = 0;
  } else if (sandbox->used + 1 < sizeof sandbox->line && byte != '\n') {
    sandbox->line[sandbox->used++] = byte;
  }
}

static void listen_to(struct pool *pool, struct sandbox *sandbox) {
  char bytes[512];
  ssize_t got = read(sandbox->socket, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  for (ssize_t i = 0; i < got; i++) on_byte(pool, sandbox, bytes[i]);
  if (got > 0) return;
  enum state was = sandbox->state;
  char line[sizeof sandbox->line];
  memcpy(line, sandbox->line, sizeof line);
  if (was == IN_USE) pool->last_use = now_ns();
  remove_socket_of(pool, sandbox);
  forget(pool, sandbox);
  if (was == BUILDING) on_failure(pool, line);
  if (was == READY) on_loss(pool);
}

/* ---- when to build ---- */

/* Nanoseconds until one more may be built; 0 = now, UINT64_MAX = none is wanted. */
static uint64_t until_build(const struct pool *pool) {
  uint64_t now = now_ns(), at = pool->next_try, quiet = pool->last_use + QUIET_NS;
  int ready = count_of(pool, READY);
  if (count_of(pool, BUILDING) || ready >= pool->size) return UINT64_MAX;
  if (ready > pool->size / 3 && quiet > at) at = quiet;
  return at > now ? at - now : 0;
}

/* A sandbox whose client never connects would always count as ready. */
static void find_lost_claims(struct pool *pool) {
  uint64_t now = now_ns();
  if (now < pool->next_look) return;
  pool->next_look = now + CLAIM_NS / 2;
  for (int i = 0; i < SANDBOXES_MAX; i++) {
    struct sandbox *sandbox = pool->sandbox[i];
    char name[RUN_ID_MAX + 2];
    if (!sandbox || sandbox->state != READY) continue;
    snprintf(name, sizeof name, "r%s", sandbox->id);
    if (faccessat(pool->directory, name, F_OK, 0) == 0) sandbox->missing = 0;
    else if (!sandbox->missing) sandbox->missing = now;
    else if (now - sandbox->missing > CLAIM_NS) kill(sandbox->pid, SIGTERM);
  }
}

static int patience(const struct pool *pool) {
  uint64_t now = now_ns(), left = until_build(pool), end = pool->last_use + pool->idle_ns;
  if (pool->idle_ns && !count_of(pool, IN_USE) && (end <= now || end - now < left)) left = end <= now ? 0 : end - now;
  if (left > CLAIM_NS * 5) left = CLAIM_NS * 5;
  return (int)((left + MS - 1) / MS);
}

/* ---- the keeper's life ---- */

/* Sandboxes in use belong to their clients and live on. */
static _Noreturn void shut_down(struct pool *pool) {
  unlinkat(pool->directory, POOL_SEAL, 0);
  uint64_t end = now_ns() + 2000 * MS;
  for (int i = 0; i < SANDBOXES_MAX; i++)
    if (pool->sandbox[i]) shutdown(pool->sandbox[i]->socket, SHUT_WR); /* all at once; one in use does not look any more */
  for (int i = 0; i < SANDBOXES_MAX; i++) {
    struct sandbox *sandbox = pool->sandbox[i];
    if (!sandbox || sandbox->state == IN_USE) continue;
    struct pollfd socket = {sandbox->socket, POLLIN, 0};
    char bytes[512];
    while (now_ns() < end && poll(&socket, 1, 100) >= 0)
      if (socket.revents && read(sandbox->socket, bytes, sizeof bytes) == 0) break;
  }
  remove_sockets(pool->directory);
  unlinkat(pool->directory, "keeper", 0);
  rmdir(pool->path);
  _exit(0);
}

static void keep(struct pool *pool, int signals) {
  static struct pollfd watched[SANDBOXES_MAX + 1];
  static struct sandbox *whose[SANDBOXES_MAX + 1];
  for (;;) {
    int count = 1;
    watched[0] = (struct pollfd){signals, POLLIN, 0};
    for (int i = 0; i < SANDBOXES_MAX; i++) {
      if (!pool->sandbox[i]) continue;
      whose[count] = pool->sandbox[i];
      watched[count++] = (struct pollfd){pool->sandbox[i]->socket, POLLIN, 0};
    }
    if (poll(watched, (nfds_t)count, patience(pool)) < 0 && errno != EINTR) shut_down(pool);
    if (watched[0].revents) shut_down(pool);
    for (int i = 1; i < count; i++)
      if (watched[i].revents) listen_to(pool, whose[i]);
    find_lost_claims(pool);
    tree_watcher_start(pool->own, pool->self);
    if (pool->idle_ns && now_ns() >= pool->last_use + pool->idle_ns && !count_of(pool, IN_USE)) shut_down(pool);
    if (until_build(pool) == 0 && build_one(pool) < 0) on_failure(pool, "{}");
  }
}

#define LOCK_ATTEMPTS 20

/* The directory and its lock. A process that removes a dead keeper's directory holds the lock for a moment: then try again.
 * 1 = there is a keeper already, -1 with errno. */
static int lock_directory(struct pool *pool) {
  for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    struct stat status;
    pool->directory = records_open(pool->path);
    if (pool->directory < 0) return -1;
    pool->lock = openat(pool->directory, "keeper", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (pool->lock >= 0 && flock(pool->lock, LOCK_EX | LOCK_NB) == 0 && fstat(pool->lock, &status) == 0 && status.st_nlink > 0) return 0;
    if (pool->lock >= 0) close(pool->lock);
    close(pool->directory);
    nanosleep(&(struct timespec){0, 10 * MS}, NULL);
  }
  return 1;
}

static int usage(void) {
  fprintf(stderr, "usage: pool keep POOLS NAME SIZE IDLE DIRECTORY | pool status|stop|prune POOLS | pool stop POOLS NAME...\n");
  return 125;
}

static int failed(const char *step, const char *path) {
  fprintf(stderr, "pool: %s: %s: %s\n", step, path, strerror(errno));
  return 125;
}

static int take_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  for (const int *signal = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, 0}; *signal; signal++) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(*signal, &standard, NULL);
    sigaddset(&set, *signal);
  }
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGCHLD, &ignore, NULL); /* the end of a launcher's socket tells its end */
  sigset_t held = set;
  add_passed_signals(&held); /* none of them is for us */
  sigprocmask(SIG_SETMASK, &held, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int take_file(struct pool *pool) { return launchfile_read(LAUNCH_FILE_FD, &pool->plan) ? -1 : show_seal(pool->directory, &pool->plan); }

static int start_keeper(char **word) {
  static struct pool pool;
  uint64_t size, idle;
  if (parse_number(word[2], SIZE_MOST, &size) < 0 || size == 0 || parse_number(word[3], UINT32_MAX, &idle) < 0 || !is_run_id(word[1])) return usage();
  pool.size = (int)size;
  pool.idle_ns = idle * 1000 * MS;
  snprintf(pool.path, sizeof pool.path, "%s/%s", word[0], word[1]);
  snprintf(pool.own, sizeof pool.own, "%.*s", (int)(strrchr(word[0], '/') ? strrchr(word[0], '/') - word[0] : 0), word[0]);
  snprintf(pool.tag, sizeof pool.tag, "%lx%dn", (unsigned long)now_ns() & 0xffffffffff, getpid());
  if (sys_close_range(LAUNCH_FILE_FD + 1, ~0u) < 0) return failed("close_range", ""); /* a pipe of the caller would stay open as long as we live */
  pool.self = sys_pidfd_open(getpid());
  int pools = records_open(word[0]);
  if (pools < 0) return failed("open", word[0]);
  close(pools);
  int taken = lock_directory(&pool);
  if (taken < 0) return failed("open", pool.path);
  if (taken > 0) return print_word("kept", word[1]), 1;
  remove_sockets(pool.directory);
  if (take_file(&pool) < 0 || write_lock(&pool, word[4]) < 0) return failed("write", pool.path);
  int signals = take_signals();
  if (signals < 0) return failed("signalfd", "");
  setsid();
  pool.last_use = now_ns();
  keep(&pool, signals);
  return 0;
}

/* ---- for people ---- */

static int count_ready(int directory) {
  DIR *entries = entries_open(directory);
  int count = 0;
  for (const char *name; entries && (name = entries_next(entries));) count += name[0] == 'r';
  if (entries) closedir(entries);
  return count;
}

static void print_keeper(const char *name, int directory, const struct record_content *content) {
  static const char *const numbers[] = {"pid", "size", "started"}, *const words[] = {"profile", "directory"};
  printf("{\"name\":");
  put_json(stdout, name);
  for (size_t i = 0; i < 3; i++) {
    uint64_t number = 0;
    const char *value = record_value(content, numbers[i], 0);
    parse_number(value ? value : "0", UINT64_MAX, &number);
    printf(",\"%s\":%llu", numbers[i], (unsigned long long)number);
  }
  for (size_t i = 0; i < 2; i++) {
    const char *value = record_value(content, words[i], 0);
    printf(",\"%s\":", words[i]);
    put_json(stdout, value ? value : "");
  }
  printf(",\"ready\":%d}\n", count_ready(directory));
}

/* Returns 1 once the keeper is gone. The lock, looked at again, proves that the process is still the one that wrote the file. */
static int end_keeper(int lock, const struct record_content *content) {
  uint64_t pid;
  const char *word = record_value(content, "pid", 0);
  if (!word || parse_number(word, 1 << 30, &pid) < 0) return 0;
  int pidfd = sys_pidfd_open((pid_t)pid);
  if (pidfd < 0 || flock(lock, LOCK_SH | LOCK_NB) == 0) return 0;
  struct pollfd end = {pidfd, POLLIN, 0};
  return sys_pidfd_send_signal(pidfd, SIGTERM) == 0 && poll(&end, 1, 5000) == 1;
}

/* Takes away what a killed keeper left. A directory that a keeper is making now has no lock yet, or keeps what is in it. */
static int sweep(int pools, const char *name, int directory, int lock) {
  if (lock >= 0) {
    remove_sockets(directory);
    unlinkat(directory, POOL_SEAL, 0);
    unlinkat(directory, "keeper", 0);
  }
  return unlinkat(pools, name, AT_REMOVEDIR) == 0;
}

enum action { STATUS, STOP, PRUNE };

/* Returns what is to be counted. */
static int visit(int pools, const char *name, enum action action) {
  struct record_content content;
  int directory = openat(pools, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), count = 0;
  if (directory < 0) return 0;
  int lock = openat(directory, "keeper", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if ((lock < 0 && errno == ENOENT) || (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)) {
    count = sweep(pools, name, directory, lock) && action == PRUNE;
  } else if (lock >= 0 && action != PRUNE && (content.bytes = read_all(lock, 1 << 20, &content.size)) && content.size) {
    if (action == STOP) count = end_keeper(lock, &content);
    else print_keeper(name, directory, &content);
  }
  if (lock >= 0) close(lock);
  return close_with(directory, count);
}

/* @param names NULL = every keeper */
static int each_keeper(const char *path, enum action action, const char *const *names) {
  int pools = records_open(path), count = 0;
  if (pools < 0) return failed("open", path);
  DIR *entries = entries_open(pools);
  for (const char *name; entries && (name = entries_next(entries));)
    if (is_run_id(name) && (!names || is_one_of(names, name))) count += visit(pools, name, action);
  if (action != STATUS) printf("%d\n", count);
  return 0;
}

int pool_main(int argc, char **argv) {
  static const char *const actions[] = {[STATUS] = "status", [STOP] = "stop", [PRUNE] = "prune"};
  if (argc == 7 && strcmp(argv[1], "keep") == 0) return start_keeper(argv + 2);
  for (int action = STATUS; argc == 3 && action <= PRUNE; action++)
    if (strcmp(argv[1], actions[action]) == 0) return each_keeper(argv[2], (enum action)action, NULL);
  if (argc > 3 && strcmp(argv[1], actions[STOP]) == 0) return each_keeper(argv[2], STOP, (const char *const *)(argv + 3));
  return usage();
}
