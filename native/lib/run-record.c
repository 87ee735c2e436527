#include "lib/run-record.h"

#include "lib/cgroup.h"
#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define RECORD_BYTES_MAX (8u << 20) /* a record without an argv of the kernel's largest size has a few KiB */
#define RECORD_WORDS_MAX 64

int is_run_id(const char *id) {
  size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");
  return length > 0 && length <= RUN_ID_MAX && id[length] == 0;
}

static int is_private(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

/* Another user may have put a link in its place, which fs.protected_symlinks need not stop. */
static int open_private(int parent, const char *name) {
  if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST) return -1;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || is_private(fd)) return fd;
  return errno = EPERM, close_with(fd, -1);
}

/* Cuts the last name off `path` and returns it; NULL without a directory above it. */
static char *cut_name(char *path) {
  char *slash = strrchr(path, '/');
  if (!slash || slash == path || !slash[1]) return NULL;
  *slash = 0;
  return slash + 1;
}

int records_open(const char *directory) {
  char path[PATH_MAX];
  copy_text(path, sizeof path, directory);
  const char *name = cut_name(path), *own = name ? cut_name(path) : NULL;
  if (!own) return errno = EINVAL, -1;
  int base = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
  if (base < 0) return -1;
  int holder = close_with(base, open_private(base, own));
  return holder < 0 ? -1 : close_with(holder, open_private(holder, name));
}

int records_look(int above, const char *below) {
  struct stat status;
  uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  int fd = sys_openat2(above, below, O_RDONLY | O_DIRECTORY, resolve);
  if (fd < 0 || (fstat(fd, &status) == 0 && (status.st_mode & 077) == 0)) return fd;
  return errno = EPERM, close_with(fd, -1);
}

/* A janitor may lock a fresh record before its maker does, and remove it: then the lock is on a deleted file. */
static int lock_fresh(int fd, uint64_t until) {
  struct stat status;
  while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK || now_ns() > until) return -1;
    usleep(100); /* a ps that looks whether the file is locked has it for a moment */
  }
  if (fstat(fd, &status) < 0 || status.st_nlink == 0) return errno = EAGAIN, -1;
  return 0;
}

/* Others hold the lock for microseconds; but one that has lost its processor meanwhile, on a busy machine, for tens of milliseconds. */
#define LOCK_PATIENCE_NS 1000000000ull

int record_create(int directory, const char *id) {
  if (!is_run_id(id)) return errno = EINVAL, -1;
  uint64_t until = now_ns() + LOCK_PATIENCE_NS;
  for (int attempt = 0; now_ns() <= until; attempt++) {
    int fd = openat(directory, id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && (errno != EEXIST || attempt == 0)) return -1;
    if (fd >= 0 && lock_fresh(fd, until) == 0) return fd;
    if (fd >= 0) close(fd);
    usleep(100); /* a janitor that locked our file first is about to remove it */
  }
  return errno = EBUSY, -1;
}

void record_put(FILE *out, const char *key, const char *value) {
  fwrite(key, 1, strlen(key) + 1, out);
  fwrite(value, 1, strlen(value) + 1, out);
}

void record_put_number(FILE *out, const char *key, long long number) {
  char text[24];
  snprintf(text, sizeof text, "%lld", number);
  record_put(out, key, text);
}

int record_write(int fd, const struct run_record *record) {
  size_t size;
  FILE *out = text_begin();
  if (!out) return -1;
  record_put(out, "id", record->id);
  record_put_number(out, "pid", getpid());
  record_put_number(out, "started", now_s());
  record_put(out, "profile", record->profile);
  record_put(out, "directory", record->caller);
  if (record->cgroup[0]) record_put(out, "cgroup", record->cgroup);
  if (!record->command) record_put(out, "warm", "1");
  for (int i = 0; record->command && record->command[i] && i < RECORD_WORDS_MAX; i++) record_put(out, "word", record->command[i]);
  const char *bytes = text_end(&size);
  return bytes && pwrite(fd, bytes, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0 ? 0 : -1;
}

void record_remove(int directory, const char *id, int fd) {
  unlinkat(directory, id, 0);
  close(fd);
}

/* A dot is in no id, so nothing takes it for a record. */
static void socket_name(const char *id, char name[RUN_ID_MAX + 8]) { snprintf(name, RUN_ID_MAX + 8, "%.*s.net", RUN_ID_MAX, id); }

int record_listen(int directory, const char *id) {
  char name[RUN_ID_MAX + 8];
  if (!is_run_id(id)) return errno = EINVAL, -1;
  socket_name(id, name);
  struct sockaddr_un address = socket_address(directory, name);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0)) return fd;
  return close_with(fd, -1);
}

void record_unlisten(int directory, const char *id) {
  char name[RUN_ID_MAX + 8];
  socket_name(id, name);
  unlinkat(directory, name, 0);
}

const char *record_value(const struct record_content *content, const char *key, int n) {
  const char *at = content->bytes, *end = at + content->size, *found, *value;
  while ((found = take_word(&at, end)) && (value = take_word(&at, end)))
    if (strcmp(found, key) == 0 && n-- == 0) return value;
  return NULL;
}

/* `path` is .../llm-do-<id>; any other path is not one of our groups, whatever the record says. 0 when no group is left there. */
static int remove_group(const char *path, int patience_ms) {
  char parent[PATH_MAX];
  copy_text(parent, sizeof parent, path);
  char *slash = strrchr(parent, '/');
  if (!slash || strncmp(slash + 1, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) != 0) return 0;
  int group = cgroup_open(path);
  if (group < 0) return errno == ENOENT || errno == ENOTSUP ? 0 : -1;
  *slash = 0;
  int holder = cgroup_open(parent), removed = -1;
  if (holder >= 0) {
    cgroup_kill(group);
    cgroup_wait_empty(group, patience_ms);
    removed = cgroup_remove(holder, slash + 1);
    close(holder);
  }
  return close_with(group, removed);
}

static int bears(const char *pid, const char *mark) {
  char path[64], environment[sizeof RUN_MARK + RUN_ID_MAX];
  snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
  return read_small(AT_FDCWD, path, environment, sizeof environment) > 0 && strcmp(environment, mark) == 0;
}

/* A child of bwrap that has not yet tied itself to its parent waits without end when both are killed at that moment; without
 * a cgroup, only its environment identifies its run. */
static void kill_marked(const char *id) {
  char mark[sizeof RUN_MARK + RUN_ID_MAX];
  snprintf(mark, sizeof mark, RUN_MARK "%.*s", RUN_ID_MAX, id);
  DIR *processes = opendir("/proc");
  struct dirent *entry;
  while (processes && (entry = readdir(processes)))
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && bears(entry->d_name, mark)) kill(atoi(entry->d_name), SIGKILL);
  if (processes) closedir(processes);
}

/* 0 when nothing is left that the record names. */
static int clean_up_after(const struct record_content *content, int patience_ms) {
  const char *id = record_value(content, "id", 0), *cgroup = record_value(content, "cgroup", 0);
  if (id && is_run_id(id)) kill_marked(id);
  return cgroup ? remove_group(cgroup, patience_ms) : 0;
}

typedef int visitor(int directory, const char *name, int fd, void *data);

static int each_file(int directory, visitor *visit, void *data) {
  DIR *entries = entries_open(directory);
  if (!entries) return -1;
  int stop = 0;
  for (const char *name; !stop && (name = entries_next(entries));) {
    if (!is_run_id(name)) continue;
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* another user's may have a lease */
    if (fd < 0) continue; /* its run has just ended */
    stop = close_with(fd, visit(directory, name, fd, data));
  }
  closedir(entries);
  return stop;
}

static int read_content(int fd, struct record_content *content) {
  if (lseek(fd, 0, SEEK_SET) < 0) return -1;
  content->bytes = read_all(fd, RECORD_BYTES_MAX, &content->size);
  return content->bytes ? 0 : -1;
}

/* Key of a record whose launcher is known to be gone: the janitor holds the lock while it waits, as launchers do while they live. */
#define DEAD "dead"

/* Where it cannot be written, ps may list the run until the janitor is done. */
static void mark_dead(int fd) {
  static const char mark[] = DEAD "\0" "1";
  struct record_content content;
  if (read_content(fd, &content) < 0) return;
  if (!record_value(&content, DEAD, 0)) (void)!pwrite(fd, mark, sizeof mark, (off_t)content.size);
  free((void *)content.bytes);
}

int record_is_live(int fd) {
  struct record_content content;
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return 0; /* closing the descriptor unlocks */
  if (read_content(fd, &content) < 0) return 0;
  int live = content.size > 0 && !record_value(&content, DEAD, 0);
  free((void *)content.bytes);
  return live;
}

struct janitor {
  int patience_ms;
  int count;
};

/* A record that cannot be read or removed stays, for the next janitor. */
static int prune_one(int directory, const char *name, int fd, void *data) {
  struct janitor *janitor = data;
  if (flock(fd, LOCK_EX | LOCK_NB) < 0) return 0; /* alive */
  mark_dead(fd);
  struct record_content content;
  if (read_content(fd, &content) < 0) return 0;
  int left = clean_up_after(&content, janitor->patience_ms);
  free((void *)content.bytes);
  if (left == 0) record_unlisten(directory, name);
  if (left == 0 && unlinkat(directory, name, 0) == 0) janitor->count++;
  return 0;
}

int records_prune(int directory, int patience_ms) {
  struct janitor janitor = {patience_ms, 0};
  each_file(directory, prune_one, &janitor);
  return janitor.count;
}

struct visit_live {
  int (*visit)(const struct record_content *, int, void *);
  void *data;
};

static int visit_one(int directory, const char *name, int fd, void *data) {
  (void)directory, (void)name;
  const struct visit_live *live = data;
  struct record_content content;
  if (!record_is_live(fd) || read_content(fd, &content) < 0) return 0;
  int stop = live->visit(&content, fd, live->data);
  free((void *)content.bytes);
  return stop;
}

int records_each(int directory, int (*visit)(const struct record_content *, int, void *), void *data) {
  struct visit_live live = {visit, data};
  return each_file(directory, visit_one, &live);
}
