/* See watchdog.h. File formats: proc(5); Pss_Anon, Pss_Shmem of smaps_rollup since Linux 5.4. */
#define _GNU_SOURCE
#include "watchdog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"

/* An anonymous file in memory: memfd, shared anonymous mapping, System V segment. */
struct memory_file {
  ino_t inode;
  long long bytes;
};

/* /proc/PID/status is about 1.5 kB, smaps_rollup 800 bytes. */
enum { PROC_FILE = 8192 };

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A process may go away between any two looks; that is not an error, it just uses nothing any more. */
static int is_gone(int error) { return error == ENOENT || error == ESRCH; }

/* Makes room for one more element; the pointer stays valid for free() on failure. */
static void *grow(void *elements, size_t count, size_t *room, size_t size) {
  if (count < *room) return elements;
  size_t more = *room == 0 ? 64 : *room * 2;
  void *grown = realloc(elements, more * size);
  if (grown != NULL) *room = more;
  return grown;
}

static int add_process(pid_t pid, void *data) {
  struct watchdog *watchdog = data;
  if (pid <= 0) return 0;
  void *grown = grow(watchdog->processes, watchdog->process_count, &watchdog->process_room, sizeof *watchdog->processes);
  if (grown == NULL) return -1;
  watchdog->processes = grown;
  watchdog->processes[watchdog->process_count++] = pid;
  return 0;
}

static int add_memory_file(struct watchdog *watchdog, const struct stat *file) {
  void *grown = grow(watchdog->files, watchdog->file_count, &watchdog->file_room, sizeof *watchdog->files);
  if (grown == NULL) return -1;
  watchdog->files = grown;
  watchdog->files[watchdog->file_count++] = (struct memory_file){file->st_ino, (long long)file->st_blocks * 512};
  return 0;
}

/* Reads a file of one process whole; the length, 0 when the process is gone, -1 otherwise. */
static ssize_t read_process(pid_t pid, const char *file, char text[PROC_FILE]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return is_gone(errno) ? 0 : -1;
  ssize_t length = read(fd, text, PROC_FILE - 1);
  int error = errno;
  close(fd);
  if (length < 0 && is_gone(error)) length = 0;
  text[length < 0 ? 0 : length] = '\0';
  errno = error;
  return length;
}

/* Bytes on the line `Key:   N kB`, or -1. */
static long long bytes_of(const char *text, const char *key) {
  const char *line = strstr(text, key);
  return line == NULL ? -1 : strtoll(line + strlen(key), NULL, 10) * 1024;
}

/* Adds the children that one thread has made. */
static int add_children(struct watchdog *watchdog, int threads, const char *thread) {
  char path[64];
  snprintf(path, sizeof path, "%.20s/children", thread);
  int fd = openat(threads, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return is_gone(errno) ? 0 : -1;
  FILE *list = fdopen(fd, "r");
  if (list == NULL) {
    close(fd);
    return -1;
  }
  int result = 0, child;
  while (result == 0 && fscanf(list, "%d", &child) == 1) result = add_process((pid_t)child, watchdog);
  fclose(list);
  return result;
}

/* A child is listed under the thread that made it, so every thread of the process is asked. */
static int add_children_of(struct watchdog *watchdog, pid_t pid, long *count) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return is_gone(errno) ? 0 : -1;
  int result = 0;
  struct dirent *thread;
  while (result == 0 && (thread = readdir(threads)) != NULL) {
    if (thread->d_name[0] == '.') continue;
    result = add_children(watchdog, dirfd(threads), thread->d_name);
    (*count)++;
  }
  closedir(threads);
  return result;
}

static void note_threads(struct watchdog *watchdog, long threads) {
  if (threads > watchdog->threads) watchdog->threads = threads;
}

static int list_tree(struct watchdog *watchdog) {
  watchdog->process_count = 0;
  if (watchdog->group >= 0) {
    note_threads(watchdog, cgroup_count_threads(watchdog->group));
    return cgroup_each_process(watchdog->group, add_process, watchdog);
  }
  if (add_process(watchdog->engine, watchdog) != 0) return -1;
  long threads = 0;
  /* The list grows while it is walked: breadth first, without recursion a deep tree could exhaust. */
  for (size_t next = 0; next < watchdog->process_count; next++) {
    if (add_children_of(watchdog, watchdog->processes[next], &threads) != 0) return -1;
  }
  note_threads(watchdog, threads);
  return 0;
}

struct pages {
  long long upper; /* bytes it can at most account for: everything resident or swapped */
  long long own;   /* bytes without file and shared pages */
};

static struct pages pages_of(const struct watchdog *watchdog, pid_t pid) {
  char text[PROC_FILE];
  struct pages pages = {0, 0};
  long long resident, shared, page = sysconf(_SC_PAGESIZE);
  if (read_process(pid, "statm", text) <= 0 || sscanf(text, "%*d %lld %lld", &resident, &shared) != 2) return pages;
  pages.upper = resident * page;
  pages.own = (resident - shared) * page;
  /* statm knows nothing of swap; status does and costs three times as much, so only where there is swap at all. */
  if (watchdog->swap && read_process(pid, "status", text) > 0) {
    long long swapped = bytes_of(text, "VmSwap:");
    if (swapped > 0) pages.upper += swapped, pages.own += swapped;
  }
  return pages;
}

/* Anonymous memory files that this process holds open; unmapped ones are in no page count. Unreadable descriptors are skipped:
 * the tree belongs to our user namespace, so that is a process which is just going away or being executed. */
static int add_memory_files(struct watchdog *watchdog, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *descriptors = opendir(path);
  if (descriptors == NULL) return 0;
  int result = 0;
  struct dirent *descriptor;
  struct stat file;
  while (result == 0 && (descriptor = readdir(descriptors)) != NULL) {
    if (descriptor->d_name[0] == '.' || fstatat(dirfd(descriptors), descriptor->d_name, &file, 0) != 0) continue;
    if (file.st_dev == watchdog->memory_files && S_ISREG(file.st_mode)) result = add_memory_file(watchdog, &file);
  }
  closedir(descriptors);
  return result;
}

static int by_inode(const void *left, const void *right) {
  ino_t a = ((const struct memory_file *)left)->inode, b = ((const struct memory_file *)right)->inode;
  return a < b ? -1 : a > b;
}

/* Bytes in all memory files of the tree, each file once however many processes hold it; -1 on failure. */
static long long memory_file_bytes(struct watchdog *watchdog) {
  watchdog->file_count = 0;
  for (size_t i = 0; i < watchdog->process_count; i++) {
    if (add_memory_files(watchdog, watchdog->processes[i]) != 0) return -1;
  }
  if (watchdog->file_count == 0) return 0;
  qsort(watchdog->files, watchdog->file_count, sizeof *watchdog->files, by_inode);
  long long total = 0;
  for (size_t i = 0; i < watchdog->file_count; i++) {
    if (i == 0 || watchdog->files[i].inode != watchdog->files[i - 1].inode) total += watchdog->files[i].bytes;
  }
  return total;
}

static long long scratch_bytes(const struct watchdog *watchdog) {
  long long total = 0;
  for (size_t i = 0; i < watchdog->scratch_count; i++) {
    struct statfs scratch;
    if (fstatfs(watchdog->scratch[i], &scratch) != 0) return -1;
    total += (long long)(scratch.f_blocks - scratch.f_bfree) * (long long)scratch.f_bsize;
  }
  return total;
}

/* The exact share of the tree. File pages do not count, the kernel can drop them. A shared page may be mapped and be in a file
 * that was counted already; no file tells which, so the larger sum stands for both. */
static long long exact_bytes(struct watchdog *watchdog, long long file_bytes) {
  char text[PROC_FILE];
  long long own = 0, shared = 0;
  for (size_t i = 0; i < watchdog->process_count; i++) {
    pid_t pid = watchdog->processes[i];
    ssize_t length = read_process(pid, "smaps_rollup", text);
    long long anonymous = length > 0 ? bytes_of(text, "Pss_Anon:") : -1;
    if (anonymous < 0) {
      /* Gone, unreadable or a kernel without the field: the cheap number, which is 0 for a process that is gone. */
      own += pages_of(watchdog, pid).own;
      continue;
    }
    long long swapped = bytes_of(text, "SwapPss:"), memory = bytes_of(text, "Pss_Shmem:");
    own += anonymous + (swapped > 0 ? swapped : 0);
    shared += memory > 0 ? memory : 0;
  }
  return own + (shared > file_bytes ? shared : file_bytes);
}

/* What the first sample needs to know. All anonymous memory files live on one internal file system; any of them tells its device. */
static int learn(struct watchdog *watchdog) {
  int file = memfd_create("llm-do", MFD_CLOEXEC);
  struct stat example;
  if (file < 0) return -1;
  int known = fstat(file, &example), error = errno;
  close(file);
  errno = error;
  if (known != 0) return -1;
  watchdog->memory_files = example.st_dev;
  struct sysinfo host;
  watchdog->swap = sysinfo(&host) == 0 && host.totalswap > 0;
  return 0;
}

int watchdog_init(struct watchdog *watchdog, pid_t engine, int group, long long limit) {
  *watchdog = (struct watchdog){.engine = engine, .group = group, .limit = limit, .looked_ms = now_ms()};
  if (group >= 0 || access("/proc/thread-self/children", R_OK) == 0) return 0;
  errno = ENOSYS;
  return -1;
}

int watchdog_add_scratch(struct watchdog *watchdog, int tmpfs) {
  if (watchdog->scratch_count < WATCHDOG_SCRATCH) {
    watchdog->scratch[watchdog->scratch_count++] = tmpfs;
    return 0;
  }
  errno = ENOSPC;
  return -1;
}

int watchdog_is_due(const struct watchdog *watchdog) { return now_ms() - watchdog->looked_ms >= WATCHDOG_PAUSE_MS; }

int watchdog_sample(struct watchdog *watchdog) {
  watchdog->looked_ms = now_ms();
  if (watchdog->memory_files == 0 && learn(watchdog) != 0) return -1;
  if (list_tree(watchdog) != 0) return -1;
  long long files = memory_file_bytes(watchdog), scratch = scratch_bytes(watchdog);
  if (files < 0 || scratch < 0) return -1;
  files += scratch;
  long long upper = files, own = files;
  for (size_t i = 0; i < watchdog->process_count; i++) {
    struct pages pages = pages_of(watchdog, watchdog->processes[i]);
    upper += pages.upper;
    own += pages.own;
  }
  watchdog->used = upper > watchdog->limit ? exact_bytes(watchdog, files) : own;
  if (watchdog->used > watchdog->peak) watchdog->peak = watchdog->used;
  return watchdog->used > watchdog->limit ? WATCHDOG_OVER : WATCHDOG_UNDER;
}

/* utime + stime + cutime + cstime of one process in clock ticks: fields 14 to 17, counted from behind the name, which may hold anything. */
static long long ticks_of(pid_t pid) {
  char text[PROC_FILE];
  if (read_process(pid, "stat", text) <= 0) return 0;
  const char *rest = strrchr(text, ')');
  long long user, system, waited_user, waited_system;
  if (rest == NULL) return 0;
  int found = sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &user, &system, &waited_user,
                     &waited_system);
  return found == 4 ? user + system + waited_user + waited_system : 0;
}

long long watchdog_cpu_usec(struct watchdog *watchdog) {
  if (watchdog->group >= 0) return cgroup_read_cpu_usec(watchdog->group);
  if (list_tree(watchdog) != 0) return -1;
  long long ticks = 0;
  for (size_t i = 0; i < watchdog->process_count; i++) ticks += ticks_of(watchdog->processes[i]);
  long long usec = ticks * 1000000 / sysconf(_SC_CLK_TCK);
  /* A process that dies unwaited takes its time out of the sum; time once used stays used. */
  if (usec > watchdog->cpu_usec) watchdog->cpu_usec = usec;
  return watchdog->cpu_usec;
}

void watchdog_free(struct watchdog *watchdog) {
  free(watchdog->processes);
  free(watchdog->files);
  watchdog->processes = NULL;
  watchdog->files = NULL;
  watchdog->process_count = watchdog->process_room = watchdog->file_count = watchdog->file_room = 0;
}
