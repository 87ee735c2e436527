/* See lib/cgroup.h for how the pieces are used together. Facts about the files: Linux, Documentation/admin-guide/cgroup-v2.rst. */
#define _GNU_SOURCE
#include "lib/cgroup.h"
#include "lib/files.h"
#include "lib/report-failure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* linux/magic.h; musl comes without the kernel's headers. */
#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

/* cpu.stat of a recent kernel is about 400 bytes, memory.events 120. */
enum { SMALL_FILE = 4096 };

/* Rounds of freeze-and-kill before giving up: one is enough for a frozen group, the rest is for forks that were under way. */
enum { KILL_ROUNDS = 100 };

/* A group is busy for a moment after its last process died; 500 waits of 1 ms are far more than was ever seen (2 ms). */
enum { REMOVE_TRIES = 500 };

/* Killed processes need a moment to die; one that is stuck in the kernel must not hold the caller for ever. */
enum { END_MS = 1000 };

static int is_group_name(const char *name) {
  return strncmp(name, CGROUP_PREFIX, sizeof CGROUP_PREFIX - 1) == 0 && strchr(name, '/') == NULL;
}

static int open_group(int parent, const char *name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static ssize_t read_file(int group, const char *file, char text[SMALL_FILE]) { return read_small(group, file, text, SMALL_FILE); }

/* The number after `key ` in a file of "key number" lines, or -1. */
static long long number_of(const char *text, const char *key) {
  size_t length = strlen(key);
  for (const char *line = text; line != NULL && *line != '\0';) {
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return strtoll(line + length + 1, NULL, 10);
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
  return -1;
}

int cgroup_open(const char *parent) {
  if (parent[0] != '/') return errno = EINVAL, -1;
  int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  struct statfs filesystem;
  if (fstatfs(fd, &filesystem) != 0) return close_with(fd, -1);
  if (filesystem.f_type == CGROUP2_SUPER_MAGIC) return fd;
  return errno = ENOTSUP, close_with(fd, -1);
}

int cgroup_create(int parent, const char *name) {
  if (!is_group_name(name)) return errno = EINVAL, -1;
  if (mkdirat(parent, name, 0755) != 0) return -1;
  int group = open_group(parent, name);
  if (group >= 0) return group;
  int saved = errno;
  unlinkat(parent, name, AT_REMOVEDIR);
  errno = saved;
  return -1;
}

/* One write: the kernel takes each write(2) to these files as a whole value. */
static int write_value(int fd, const char *value) {
  size_t length = strlen(value);
  ssize_t written = write(fd, value, length);
  if (written >= 0 && written != (ssize_t)length) errno = EIO;
  return written == (ssize_t)length ? 0 : -1;
}

/* A small file of one disk; 0 when there is none, as for the paths of a multipath disk, which have no number of their own. */
static int read_disk(int disks, const char *name, const char *file, char text[SMALL_FILE]) {
  char path[300];
  snprintf(path, sizeof path, "%.255s/%s", name, file);
  return read_file(disks, path, text) > 0;
}

/* 1 when the value was written for that disk, 0 when nothing is behind its name. */
static int set_disk(int disks, const char *name, int fd, const char *value) {
  char size[SMALL_FILE], number[SMALL_FILE], line[256];
  if (!read_disk(disks, name, "size", size) || strtoll(size, NULL, 10) == 0) return 0;
  if (!read_disk(disks, name, "dev", number)) return 0;
  number[strcspn(number, "\n")] = '\0';
  if (snprintf(line, sizeof line, "%.20s %s", number, value) >= (int)sizeof line) return errno = E2BIG, -1;
  if (write_value(fd, line) == 0) return 1;
  return errno == ENODEV ? 0 : -1; /* taken out this moment */
}

static int set_each_disk(int fd, const char *value) {
  DIR *disks = opendir("/sys/block");
  if (disks == NULL) return -1;
  int done = 0, count = 0;
  for (const char *name; done >= 0 && (name = entries_next(disks)); count += done > 0) done = set_disk(dirfd(disks), name, fd, value);
  if (entries_close(disks, done < 0 ? -1 : 0) < 0) return -1;
  return count > 0 ? 0 : (errno = ENODEV, -1);
}

int cgroup_set(int group, const char *file, const char *value) {
  int fd = openat(group, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? CGROUP_ABSENT : -1;
  return close_with(fd, strncmp(value, "* ", 2) == 0 ? set_each_disk(fd, value + 2) : write_value(fd, value));
}

static int visit_processes_of(int group, int (*visit)(pid_t, void *), void *data) {
  int fd = openat(group, "cgroup.procs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  FILE *list = fdopen(fd, "r");
  if (list == NULL) return close_with(fd, -1);
  int result = 0, pid;
  while (result == 0 && fscanf(list, "%d", &pid) == 1) result = visit((pid_t)pid, data);
  if (result == 0 && ferror(list)) result = -1;
  int saved = errno;
  fclose(list);
  /* ENODEV: the group was removed while it was read, so nothing lives in it. */
  errno = saved;
  return result == -1 && saved == ENODEV ? 0 : result;
}

/* Calls act(parent, name) for each group directly below. */
static int each_child(int group, int (*act)(int, const char *, void *), void *data) {
  DIR *entries = entries_open(group);
  if (entries == NULL) return -1;
  int result = 0;
  for (struct dirent *entry; result == 0 && (errno = 0, entry = readdir(entries)) != NULL;) {
    if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    result = act(group, entry->d_name, data);
  }
  (void)entries_close(entries, 0);
  return result;
}

struct visitor {
  int (*visit)(pid_t, void *);
  void *data;
};

static int visit_child(int parent, const char *name, void *data) {
  const struct visitor *visitor = data;
  int child = open_group(parent, name);
  if (child < 0) return errno == ENOENT ? 0 : -1;
  return close_with(child, cgroup_each_process(child, visitor->visit, visitor->data));
}

int cgroup_each_process(int group, int (*visit)(pid_t pid, void *data), void *data) {
  int result = visit_processes_of(group, visit, data);
  struct visitor visitor = {visit, data};
  return result != 0 ? result : each_child(group, visit_child, &visitor);
}

static int kill_process(pid_t pid, void *data) {
  (void)data;
  /* 0 is a process this pid namespace cannot name; kill(0) would be our own process group. */
  if (pid <= 0 || kill(pid, SIGKILL) == 0 || errno == ESRCH) return 0;
  return -1;
}

int cgroup_kill_each(int group) {
  for (int round = 0; round < KILL_ROUNDS; round++) {
    /* Frozen, nothing forks away between the list and the signals. SIGKILL ends frozen processes too (cgroup-v2.rst, cgroup.freeze). */
    int frozen = cgroup_set(group, "cgroup.freeze", "1");
    if (frozen < 0) return -1;
    if (cgroup_each_process(group, kill_process, NULL) != 0) return -1;
    if (frozen == 0 && cgroup_set(group, "cgroup.freeze", "0") < 0) return -1;
    if (cgroup_wait_empty(group, 10) == 0) return 0;
    if (errno != ETIMEDOUT) return -1;
  }
  errno = ETIMEDOUT;
  return -1;
}

int cgroup_kill(int group) {
  int killed = cgroup_set(group, "cgroup.kill", "1");
  return killed == CGROUP_ABSENT ? cgroup_kill_each(group) : killed;
}

/* 1 when something lives in the group, 0 when not, -1 on error. */
static int is_populated(int events) {
  char text[256];
  ssize_t length = pread(events, text, sizeof text - 1, 0);
  if (length < 0) return errno == ENODEV ? 0 : -1;
  text[length] = '\0';
  long long populated = number_of(text, "populated");
  if (populated >= 0) return populated != 0;
  errno = EIO;
  return -1;
}

int cgroup_wait_empty(int group, int timeout_ms) {
  int events = openat(group, "cgroup.events", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (events < 0) return errno == ENOENT ? 0 : -1;
  uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000;
  /* The kernel holds a second notification within 10 ms back (CGROUP_FILE_NOTIFY_MIN_INTV), so a short run would always wait
   * for that timer: look again after 1, 2, 4... ms instead of trusting poll alone. */
  for (int slice = 1;; slice *= 2) {
    int populated = is_populated(events);
    if (populated <= 0) return close_with(events, populated);
    uint64_t now = now_ns();
    if (now >= end) break;
    if (slice > 64) slice = 64;
    struct pollfd change = {.fd = events, .events = POLLPRI};
    if (poll(&change, 1, slice) < 0 && errno != EINTR) return close_with(events, -1);
  }
  errno = ETIMEDOUT;
  return close_with(events, -1);
}

long cgroup_count_threads(int group) {
  int fd = openat(group, "cgroup.threads", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[SMALL_FILE];
  long count = 0;
  ssize_t got;
  while ((got = read(fd, text, sizeof text)) > 0)
    for (ssize_t i = 0; i < got; i++) count += text[i] == '\n';
  return close_with(fd, got < 0 ? -1 : count);
}

/* A file with one number in it, or -1. */
static long long read_number(int group, const char *file) {
  char text[SMALL_FILE];
  return read_file(group, file, text) <= 0 ? -1 : strtoll(text, NULL, 10);
}

long long cgroup_read_cpu_usec(int group) {
  char text[SMALL_FILE];
  return read_file(group, "cpu.stat", text) < 0 ? -1 : number_of(text, "usage_usec");
}

/* A line for each disk that was used, "8:0 rbytes=1 wbytes=2 rios=...", however many there are. */
static void read_disk_bytes(int group, struct cgroup_usage *usage) {
  char word[64];
  usage->read_bytes = usage->write_bytes = -1;
  int fd = openat(group, "io.stat", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *words = fd < 0 ? NULL : fdopen(fd, "r");
  if (words == NULL) return (void)close_with(fd, 0);
  long long read = 0, written = 0;
  while (fscanf(words, "%63s", word) == 1) {
    if (strncmp(word, "rbytes=", 7) == 0) read += strtoll(word + 7, NULL, 10);
    if (strncmp(word, "wbytes=", 7) == 0) written += strtoll(word + 7, NULL, 10);
  }
  if (!ferror(words)) usage->read_bytes = read, usage->write_bytes = written;
  fclose(words);
}

void cgroup_read_usage(int group, struct cgroup_usage *usage) {
  char text[SMALL_FILE];
  /* cpu.stat is always there and the dearest of all to read; what interests is in it with the controller only. */
  int cpu_counted = faccessat(group, "cpu.max", F_OK, 0) == 0 && read_file(group, "cpu.stat", text) >= 0;
  usage->throttled_usec = cpu_counted ? number_of(text, "throttled_usec") : -1;

  int memory_counted = read_file(group, "memory.events", text) >= 0;
  usage->oom = memory_counted ? number_of(text, "oom") : -1;
  usage->oom_kill = memory_counted ? number_of(text, "oom_kill") : -1;
  usage->memory_peak = memory_counted ? read_number(group, "memory.peak") : -1;
  if (memory_counted && usage->memory_peak < 0) usage->memory_peak = 0;

  usage->pids_max = read_file(group, "pids.events", text) < 0 ? -1 : number_of(text, "max");
  usage->pids_peak = usage->pids_max < 0 ? -1 : read_number(group, "pids.peak");

  read_disk_bytes(group, usage);
}

static int remove_group(int parent, const char *name, void *data);

static int remove_children(int parent, const char *name) {
  int group = open_group(parent, name);
  if (group < 0) return errno == ENOENT ? 0 : -1;
  return close_with(group, each_child(group, remove_group, NULL));
}

static int remove_group(int parent, const char *name, void *data) {
  (void)data;
  for (int try = 0; try < REMOVE_TRIES; try++) {
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    if (errno != EBUSY) return -1;
    /* Busy means processes or groups inside; the first time it may be groups, afterwards it can only be a process that is still dying. */
    if (try == 0 && remove_children(parent, name) != 0) return -1;
    if (try > 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  errno = EBUSY;
  return -1;
}

int cgroup_remove(int parent, const char *name) {
  if (is_group_name(name)) return remove_group(parent, name, NULL);
  errno = EINVAL;
  return -1;
}

int cgroup_end(int parent, const char *name, int group) {
  if (!is_group_name(name)) return errno = EINVAL, -1;
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  if (cgroup_kill(group) < 0 || cgroup_wait_empty(group, END_MS) < 0) return -1;
  return cgroup_remove(parent, name);
}
