/* See runner/watchdog.h. File formats: proc(5); Pss_Anon, Pss_Shmem of smaps_rollup since Linux 5.4. */
#define _GNU_SOURCE
#include "runner/watchdog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/arena.h"
#include "lib/cgroup.h"
#include "lib/clock.h"
#include "lib/files.h"
#include "lib/report-failure.h"

/* An anonymous file in memory: memfd, shared anonymous mapping, System V segment. */
struct memory_file {
  dev_t device;
  ino_t inode;
  long long bytes; /* -1 = not known */
};

/* /proc/PID/status is about 1.5 kB, smaps_rollup 800 bytes. */
enum { PROC_FILE = 8192 };

/* A process may go away between any two looks; that is not an error, it just uses nothing any more. */
static int is_gone(int error) { return error == ENOENT || error == ESRCH; }

/* Bytes on the line `Key:   N kB`, or -1. */
static long long bytes_of(const char *text, const char *key) {
  const char *line = strstr(text, key);
  return line == NULL ? -1 : strtoll(line + strlen(key), NULL, 10) * 1024;
}

/* ---- what is listed ---- */

struct listed {
  pid_t pid, parent;
};

static int push(struct watchdog *watchdog, pid_t pid, pid_t parent) {
  return pid <= 0 ? 0 : append(watchdog->listed, watchdog->listed_count, &((struct listed){pid, parent}));
}

static int push_member(pid_t pid, void *data) { return push(data, pid, 0); }

/* The children that one thread has made, which end up above everything that is listed, the youngest on top. */
static int push_children(struct watchdog *watchdog, int threads, const char *thread, pid_t parent) {
  char path[64], text[PROC_FILE];
  snprintf(path, sizeof path, "%.20s/children", thread);
  int fd = openat(threads, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return is_gone(errno) ? 0 : -1;
  FILE *list = fdopen(fd, "r");
  if (list == NULL) return close_with(fd, -1);
  setvbuf(list, text, _IOFBF, sizeof text);
  int result = 0, child;
  while (result == 0 && fscanf(list, "%d", &child) == 1) result = push(watchdog, (pid_t)child, parent);
  fclose(list);
  return result;
}

/* ---- one process ---- */

struct process {
  pid_t pid, parent;
  long long upper; /* bytes it can at most account for: everything resident or swapped */
  long long own;   /* bytes without file and shared pages */
};

/* Reads a file below a directory whole; the length, 0 when its process is gone, -1 otherwise. */
static ssize_t read_file_at(int directory, const char *file, char text[PROC_FILE]) {
  ssize_t length = read_small(directory, file, text, PROC_FILE);
  return length < 0 && is_gone(errno) ? 0 : length;
}

/* The pages of a process or a thread. A process whose first thread has ended (pthread_exit) has no pages there: the others tell. */
static void take_pages(const struct watchdog *watchdog, int directory, struct process *process) {
  char text[PROC_FILE];
  long long resident, shared, page = sysconf(_SC_PAGESIZE);
  if (read_file_at(directory, "statm", text) <= 0 || sscanf(text, "%*d %lld %lld", &resident, &shared) != 2) return;
  process->upper = resident * page;
  process->own = (resident - shared) * page;
  /* statm knows nothing of swap; status does and costs three times as much, so only where there is swap at all. */
  if (watchdog->swap && read_file_at(directory, "status", text) > 0) {
    long long swapped = bytes_of(text, "VmSwap:");
    if (swapped > 0) process->upper += swapped, process->own += swapped;
  }
}

/* Whether a process or thread has ended and is only waited for. What is gone altogether has ended, too. */
static int has_ended(int directory) {
  char text[PROC_FILE];
  if (read_file_at(directory, "stat", text) <= 0) return 1;
  const char *rest = strrchr(text, ')');
  return rest == NULL || rest[1] == '\0' || strchr("ZXx", rest[2]) != NULL;
}

static pid_t parent_of(int directory) {
  char text[PROC_FILE];
  int parent = 0;
  if (read_file_at(directory, "stat", text) <= 0) return 0;
  const char *rest = strrchr(text, ')');
  return rest != NULL && sscanf(rest + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static int add_file(struct watchdog *watchdog, dev_t device, ino_t inode, long long bytes) {
  return append(watchdog->files, watchdog->file_count, &((struct memory_file){device, inode, bytes}));
}

static int is_of_device(const struct watchdog *watchdog, dev_t device) {
  for (size_t i = 0; i < watchdog->devices; i++)
    if (watchdog->device[i] == device) return 1;
  return 0;
}

/* A subvolume of btrfs has another device in `maps` than in stat(2). */
static int may_be_of_device(const struct watchdog *watchdog, dev_t device) {
  return is_of_device(watchdog, device) || (watchdog->has_subvolumes && major(device) == 0 && device != watchdog->memory_files);
}

static int is_counted(const struct watchdog *watchdog, const struct stat *file) {
  if (!S_ISREG(file->st_mode)) return 0;
  return watchdog->devices ? file->st_nlink == 0 && is_of_device(watchdog, file->st_dev) : file->st_dev == watchdog->memory_files;
}

/* Files that were sent over this socket and have not been received. */
static int has_messages(int directory, const char *descriptor) {
  char path[32], text[PROC_FILE];
  snprintf(path, sizeof path, "fdinfo/%.16s", descriptor);
  return read_file_at(directory, path, text) > 0 && bytes_of(text, "scm_fds:") > 0;
}

static int take_descriptor(struct watchdog *watchdog, int directory, const char *descriptor, const struct stat *file) {
  if (is_counted(watchdog, file)) return add_file(watchdog, file->st_dev, file->st_ino, (long long)file->st_blocks * 512);
  if (watchdog->is_deep && S_ISSOCK(file->st_mode) && has_messages(directory, descriptor)) watchdog->is_hidden = 1;
  return 0;
}

/* A line of `maps`: the removed file that it maps. */
static int take_mapping(struct watchdog *watchdog, int directory, const char *line) {
  unsigned long long begin, end, inode;
  unsigned major_number, minor_number;
  char path[80];
  struct stat file;
  size_t length = strcspn(line, "\n");
  if (length < 10 || memcmp(line + length - 10, " (deleted)", 10) != 0) return 0;
  if (sscanf(line, "%llx-%llx %*s %*x %x:%x %llu", &begin, &end, &major_number, &minor_number, &inode) != 5 || inode == 0) return 0;
  snprintf(path, sizeof path, "map_files/%llx-%llx", begin, end);
  if (fstatat(directory, path, &file, 0) == 0) return is_counted(watchdog, &file) ? add_file(watchdog, file.st_dev, file.st_ino, (long long)file.st_blocks * 512) : 0;
  dev_t device = makedev(major_number, minor_number);
  return may_be_of_device(watchdog, device) ? add_file(watchdog, device, (ino_t)inode, -1) : 0;
}

/* Without a right to read them the descriptors cannot be read either. */
static int take_mappings(struct watchdog *watchdog, int directory) {
  int fd = openat(directory, "maps", O_RDONLY | O_CLOEXEC), result = 0;
  FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
  char *line = NULL;
  size_t room = 0;
  if (!maps) return fd >= 0 ? (close(fd), -1) : 0;
  while (result == 0 && getline(&line, &room, maps) > 0) result = take_mapping(watchdog, directory, line);
  free(line);
  fclose(maps);
  return result;
}

enum sight { SEEN, GONE, CLOSED };

/* Anonymous memory files that a thread holds open; unmapped ones are in no page count. `directory`: of the thread. */
static int add_memory_files(struct watchdog *watchdog, int directory, enum sight *sight) {
  DIR *descriptors = entries_at(directory, "fd");
  int result = 0, count = 0;
  *sight = SEEN;
  if (descriptors == NULL) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) return -1;
    *sight = is_gone(errno) || has_ended(directory) ? GONE : CLOSED;
    return 0;
  }
  struct stat file;
  for (const char *name; result == 0 && (name = entries_next(descriptors)); count++)
    if (fstatat(dirfd(descriptors), name, &file, 0) == 0) result = take_descriptor(watchdog, directory, name, &file);
  closedir(descriptors);
  if (result == 0 && watchdog->is_deep) result = take_mappings(watchdog, directory);
  /* The list of a process that has just ended is empty. Only a child of it can still hold its descriptors. */
  if (count == 0 && has_ended(directory)) *sight = GONE;
  return result;
}

/* ---- one look ---- */

struct scan {
  int missed; /* processes that ended after they were listed: a child may hold what they held */
  int closed; /* processes whose descriptors we may not see */
  long threads;
};

static int shares_descriptors(pid_t one, pid_t other) {
  return syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) == 0;
}

static void note_sight(struct scan *scan, enum sight sight) {
  scan->missed += sight == GONE;
  scan->closed += sight == CLOSED;
}

/* Threads may have descriptors of their own, and the first may have ended before the others. */
static int visit_thread(struct watchdog *watchdog, int threads, pid_t thread, struct process *process, pid_t *shown, struct scan *scan) {
  char name[16];
  enum sight sight;
  snprintf(name, sizeof name, "%d", (int)thread);
  if (*shown > 0 && shares_descriptors(*shown, thread)) return 0;
  int directory = openat(threads, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return is_gone(errno) ? 0 : -1;
  if (process->upper == 0) take_pages(watchdog, directory, process);
  int result = add_memory_files(watchdog, directory, &sight);
  close(directory);
  if (sight != GONE) *shown = thread;
  if (sight == CLOSED) scan->closed++;
  return result;
}

static int visit_threads(struct watchdog *watchdog, int directory, struct process *process, enum sight sight, struct scan *scan) {
  pid_t shown = sight == GONE ? 0 : process->pid;
  DIR *threads = entries_at(directory, "task");
  int result = 0;
  if (threads == NULL) return is_gone(errno) ? 0 : -1;
  for (const char *thread; result == 0 && (thread = entries_next(threads)); scan->threads++) {
    pid_t id = (pid_t)atoi(thread);
    if (watchdog->group < 0) result = push_children(watchdog, dirfd(threads), thread, process->pid);
    if (result == 0 && id != process->pid) result = visit_thread(watchdog, dirfd(threads), id, process, &shown, scan);
  }
  closedir(threads);
  return result;
}

/* init and the engine hold no memory for the command, and cannot be read. Orphans are reparented to init, none to bwrap's monitor. */
static int is_ours(const struct watchdog *watchdog, const struct process *process) {
  return process->pid == watchdog->engine || (watchdog->is_monitor && process->parent == watchdog->engine);
}

/* Everything about one process at once, as soon as it is known: what is looked at later may be gone by then. */
static int visit(struct watchdog *watchdog, const struct listed *listed, struct scan *scan) {
  char path[32];
  struct process process = {.pid = listed->pid, .parent = listed->parent};
  enum sight sight;
  snprintf(path, sizeof path, "/proc/%d", (int)listed->pid);
  int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return is_gone(errno) ? (scan->missed++, 0) : -1;
  int result = add_memory_files(watchdog, directory, &sight);
  take_pages(watchdog, directory, &process);
  if (!process.parent && watchdog->group >= 0) process.parent = parent_of(directory);
  if (sight == CLOSED && is_ours(watchdog, &process)) sight = SEEN;
  note_sight(scan, sight);
  if (result == 0) result = visit_threads(watchdog, directory, &process, sight, scan);
  return close_with(directory, result == 0 ? append(watchdog->processes, watchdog->process_count, &process) : -1);
}

static int by_pid(const void *left, const void *right) {
  pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;
  return a < b ? -1 : a > b;
}

/* Visited by earlier rounds, in order. */
static int note_visited(struct watchdog *watchdog) {
  watchdog->visited_count = 0;
  for (size_t i = 0; i < watchdog->process_count; i++)
    if (append(watchdog->visited, watchdog->visited_count, &watchdog->processes[i].pid) < 0) return -1;
  if (watchdog->visited_count > 0) qsort(watchdog->visited, watchdog->visited_count, sizeof *watchdog->visited, by_pid);
  return 0;
}

static int was_visited(const struct watchdog *watchdog, pid_t pid) {
  return watchdog->visited_count > 0 && bsearch(&pid, watchdog->visited, watchdog->visited_count, sizeof pid, by_pid) != NULL;
}

static int push_children_of(struct watchdog *watchdog, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return is_gone(errno) ? 0 : -1;
  int result = 0;
  for (const char *thread; result == 0 && (thread = entries_next(threads));) result = push_children(watchdog, dirfd(threads), thread, pid);
  closedir(threads);
  return result;
}

/* Depth first, the youngest child first: a process that hands its memory to a child and ends is looked at while it is young. */
static int walk(struct watchdog *watchdog, struct scan *scan) {
  watchdog->listed_count = 0;
  int result = watchdog->group >= 0 ? cgroup_each_process(watchdog->group, push_member, watchdog) : push(watchdog, watchdog->engine, 0);
  while (result == 0 && watchdog->listed_count > 0) {
    struct listed next = watchdog->listed[--watchdog->listed_count];
    if (!was_visited(watchdog, next.pid)) result = visit(watchdog, &next, scan);
    else if (watchdog->group < 0) result = push_children_of(watchdog, next.pid);
  }
  return result;
}

/* Rounds of a look that finds processes which have just ended: each visits what is new. */
enum { ROUNDS = 3 };

static int scan_processes(struct watchdog *watchdog, struct scan *scan) {
  int result = 0;
  watchdog->process_count = watchdog->visited_count = watchdog->file_count = 0;
  for (int round = 0; result == 0 && round < ROUNDS && (round == 0 || scan->missed > 0); round++) {
    if (round > 0) result = note_visited(watchdog);
    scan->missed = 0;
    if (result == 0) result = walk(watchdog, scan);
  }
  long threads = watchdog->group >= 0 ? cgroup_count_threads(watchdog->group) : scan->threads;
  if (threads > watchdog->threads) watchdog->threads = threads;
  return result;
}

/* The largest size that was seen of a file comes first. */
static int by_inode(const void *left, const void *right) {
  const struct memory_file *a = left, *b = right;
  if (a->inode != b->inode) return a->inode < b->inode ? -1 : 1;
  if (a->device != b->device) return a->device < b->device ? -1 : 1;
  return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

static int is_same_file(const struct memory_file *a, const struct memory_file *b) { return a->inode == b->inode && a->device == b->device; }

/* Bytes in all memory files of the tree, each file once however many processes hold it. */
static long long memory_file_bytes(struct watchdog *watchdog) {
  if (watchdog->file_count == 0) return 0;
  qsort(watchdog->files, watchdog->file_count, sizeof *watchdog->files, by_inode);
  long long total = 0;
  for (size_t i = 0; i < watchdog->file_count; i++) {
    if (i > 0 && is_same_file(&watchdog->files[i], &watchdog->files[i - 1])) continue;
    if (watchdog->files[i].bytes < 0) watchdog->is_hidden = 1;
    else total += watchdog->files[i].bytes;
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

/* The memory of a process that ended since the last look. A copy of its parent costs nothing until it is written to. */
static long long last_known(const struct watchdog *watchdog, const struct process *process) {
  for (size_t i = 0; i < watchdog->process_count; i++) {
    const struct process *parent = &watchdog->processes[i];
    if (parent->pid == process->parent) return process->own > parent->own ? process->own - parent->own : 0;
  }
  return process->own;
}

static ssize_t read_shares(pid_t pid, char text[PROC_FILE]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  return read_file_at(AT_FDCWD, path, text);
}

/* The exact share of the tree. File pages do not count, the kernel can drop them. A shared page may be mapped and be in a file
 * that was counted already; no file tells which, so the larger sum counts for both. */
static long long exact_bytes(struct watchdog *watchdog, long long file_bytes) {
  char text[PROC_FILE];
  long long own = 0, shared = 0;
  for (size_t i = 0; i < watchdog->process_count; i++) {
    const struct process *process = &watchdog->processes[i];
    ssize_t length = read_shares(process->pid, text);
    long long anonymous = length > 0 ? bytes_of(text, "Pss_Anon:") : -1;
    if (anonymous < 0) {
      /* Gone, or unreadable, or without its first thread; or a kernel without the field. */
      own += length == 0 ? last_known(watchdog, process) : process->own;
      continue;
    }
    long long swapped = bytes_of(text, "SwapPss:"), memory = bytes_of(text, "Pss_Shmem:");
    own += anonymous + (swapped > 0 ? swapped : 0);
    shared += memory > 0 ? memory : 0;
  }
  return own + (shared > file_bytes ? shared : file_bytes);
}

/* All memory in anonymous and temporary files of the host. */
static long long host_shared_bytes(void) {
  struct sysinfo host;
  return sysinfo(&host) == 0 ? (long long)host.sharedram * host.mem_unit : 0;
}

/* Facts that the first sample needs. All anonymous memory files live on one internal file system; any of them tells its device. */
static int learn(struct watchdog *watchdog) {
  int file = memfd_create("llm-do", MFD_CLOEXEC);
  struct stat example;
  if (file < 0) return -1;
  if (close_with(file, fstat(file, &example)) != 0) return -1;
  watchdog->memory_files = example.st_dev;
  struct sysinfo host;
  watchdog->swap = sysinfo(&host) == 0 && host.totalswap > 0;
  return 0;
}

int watchdog_init(struct watchdog *watchdog, pid_t engine, int group, long long limit) {
  *watchdog = (struct watchdog){.engine = engine, .group = group, .limit = limit, .looked_ns = now_ns(), .foreign = host_shared_bytes()};
  if (group >= 0) return 0;
  int children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC); /* access(2) would not ask Landlock */
  if (children < 0) return errno = ENOSYS, -1;
  return close_with(children, 0);
}

int watchdog_add_scratch(struct watchdog *watchdog, int tmpfs) {
  if (watchdog->scratch_count < WATCHDOG_SCRATCH) {
    watchdog->scratch[watchdog->scratch_count++] = tmpfs;
    return 0;
  }
  errno = ENOSPC;
  return -1;
}

int watchdog_is_due(const struct watchdog *watchdog) { return now_ns() - watchdog->looked_ns >= WATCHDOG_PAUSE_MS * 1000000ull; }

/* Counts looks in a row: one alone may be chance. */
enum { CLOSED_SCANS = 2, MISSED_SCANS = 8, LONG_SCANS = 2 };

static void count_row(int *row, int is_so) { *row = is_so ? *row + 1 : 0; }

static int note_rows(struct watchdog *watchdog, const struct scan *scan) {
  count_row(&watchdog->closed_scans, scan->closed > 0);
  count_row(&watchdog->missed_scans, scan->missed > 0);
  return watchdog->closed_scans >= CLOSED_SCANS || watchdog->missed_scans >= MISSED_SCANS;
}

/*
 * Upper bound of what memory files may hold that were not seen: all by which those of the host have grown since the run began. It
 * counts only while something stays out of sight, since others on the host have such files, too.
 */
static long long hidden_bytes(struct watchdog *watchdog, const struct scan *scan, long long known) {
  long long rest = host_shared_bytes() - known;
  if (rest < 0) rest = 0;
  if (rest < watchdog->foreign) watchdog->foreign = rest;
  return note_rows(watchdog, scan) ? rest - watchdog->foreign : 0;
}

/* Most processor time of a look, about 100 000 descriptors; the clock on the wall says how busy the host is. */
#define SCAN_NS (250 * 1000000ll)

static long long processor_ns(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (long long)used.tv_sec * 1000000000 + used.tv_nsec;
}

int watchdog_sample(struct watchdog *watchdog) {
  struct scan scan = {0};
  watchdog->looked_ns = now_ns();
  if (watchdog->memory_files == 0 && learn(watchdog) != 0) return -1;
  long long begun = processor_ns();
  if (scan_processes(watchdog, &scan) != 0) return -1;
  count_row(&watchdog->long_scans, processor_ns() - begun > SCAN_NS);
  long long files = memory_file_bytes(watchdog), scratch = scratch_bytes(watchdog);
  if (scratch < 0) return -1;
  files += scratch;
  files += hidden_bytes(watchdog, &scan, files);
  long long upper = files, own = files;
  for (size_t i = 0; i < watchdog->process_count; i++) {
    upper += watchdog->processes[i].upper;
    own += watchdog->processes[i].own;
  }
  watchdog->used = upper > watchdog->limit ? exact_bytes(watchdog, files) : own;
  if (watchdog->used > watchdog->peak) watchdog->peak = watchdog->used;
  return watchdog->used > watchdog->limit || watchdog->long_scans >= LONG_SCANS ? WATCHDOG_OVER : WATCHDOG_UNDER;
}

int watchdog_sum_removed(struct watchdog *watchdog, long long *bytes) {
  struct scan scan = {0};
  watchdog->is_hidden = 0;
  if (watchdog->memory_files == 0 && learn(watchdog) != 0) return -1;
  if (scan_processes(watchdog, &scan) != 0) return -1;
  *bytes = memory_file_bytes(watchdog);
  watchdog->is_hidden |= note_rows(watchdog, &scan);
  return 0;
}

/* utime + stime + cutime + cstime of one process in clock ticks: fields 14 to 17, counted from behind the name, which may hold anything. */
static long long ticks_of(pid_t pid) {
  char path[64], text[PROC_FILE];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_file_at(AT_FDCWD, path, text) <= 0) return 0;
  const char *rest = strrchr(text, ')');
  long long user, system, waited_user, waited_system;
  if (rest == NULL) return 0;
  int found = sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &user, &system, &waited_user,
                     &waited_system);
  return found == 4 ? user + system + waited_user + waited_system : 0;
}

long long watchdog_cpu_usec(struct watchdog *watchdog) {
  if (watchdog->group >= 0) return cgroup_read_cpu_usec(watchdog->group);
  long long ticks = 0;
  watchdog->listed_count = 0;
  int result = push(watchdog, watchdog->engine, 0);
  while (result == 0 && watchdog->listed_count > 0) {
    pid_t pid = watchdog->listed[--watchdog->listed_count].pid;
    ticks += ticks_of(pid);
    result = push_children_of(watchdog, pid);
  }
  if (result != 0) return -1;
  long long usec = ticks * 1000000 / sysconf(_SC_CLK_TCK);
  /* A process that dies unwaited takes its time out of the sum; time once used stays used. */
  if (usec > watchdog->cpu_usec) watchdog->cpu_usec = usec;
  return watchdog->cpu_usec;
}
