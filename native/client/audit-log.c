#include "client/audit-log.h"

#include "client/sha256.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* `prev` of the first line. */
#define CHAIN_START "0000000000000000000000000000000000000000000000000000000000000000"
#define CHUNK (64 << 10)
/* Another writer needs well under a millisecond; then node waits on. */
#define LOCK_TRIES 20
#define LOCK_PAUSE_NS 1000000

/* ---- who holds the lock ---- */

static int read_text(const char *path, char *text, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);
  if (fd >= 0) close(fd);
  if (length < 0) return -1;
  text[length] = 0;
  return 0;
}

/* Field 22 of proc_pid_stat(5), counted behind the name of the program, which may hold anything. */
static const char *start_time(char *stat) {
  char *at = strrchr(stat, ')');
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  if (!at) return NULL;
  at[1 + strcspn(at + 1, " ")] = 0;
  return at + 1;
}

/* Of this process, as src/os/process-identity.ts writes it. */
static int own_identity(char *text, size_t room) {
  char boot[64], namespace[64], stat[1024];
  if (read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 0 || read_text("/proc/self/stat", stat, sizeof stat) < 0) return -1;
  ssize_t length = readlink("/proc/self/ns/pid", namespace, sizeof namespace - 1);
  const char *started = start_time(stat);
  if (length < 0 || !started) return -1;
  namespace[length] = 0;
  boot[strcspn(boot, "\n")] = 0;
  const char *number = namespace + strcspn(namespace, "0123456789");
  size_t written = (size_t)snprintf(text, room, "%s/%.*s/%d:%s", boot, (int)strspn(number, "0123456789"), number, (int)getpid(), started);
  return written < room ? 0 : -1;
}

/* ---- the file and its lock ---- */

struct audit_log {
  char path[PATH_MAX], lock[PATH_MAX + 16];
  int fd;
};

/* The directory is resolved, the file itself is not: every spelling of one log takes the same lock. */
static int find_log(struct audit_log *log, const char *file) {
  char directory[PATH_MAX], real[PATH_MAX];
  const char *slash = strrchr(file, '/');
  if (!slash || !slash[1] || (size_t)(slash - file) >= sizeof directory) return -1;
  memcpy(directory, file, (size_t)(slash - file));
  directory[slash - file] = 0;
  if (!realpath(*directory ? directory : "/", real)) return -1;
  size_t length = (size_t)snprintf(log->path, sizeof log->path, "%s%s", strcmp(real, "/") == 0 ? "" : real, slash);
  snprintf(log->lock, sizeof log->lock, "%s.lock.0", log->path);
  return length < sizeof log->path ? 0 : -1;
}

static int take_lock(const struct audit_log *log) {
  char identity[256];
  if (own_identity(identity, sizeof identity) < 0) return -1;
  for (int tries = 0; tries < LOCK_TRIES; tries++) {
    if (symlink(identity, log->lock) == 0) return 0;
    if (errno != EEXIST) return -1;
    nanosleep(&(struct timespec){0, LOCK_PAUSE_NS}, NULL);
  }
  return -1;
}

/* O_NONBLOCK: a FIFO must be refused, not waited for. */
static int open_file(const char *path) {
  struct stat status;
  int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  close(fd);
  return -1;
}

static int open_log(struct audit_log *log, const char *file) {
  if (find_log(log, file) < 0 || take_lock(log) < 0) return -1;
  log->fd = open_file(log->path);
  if (log->fd >= 0) return 0;
  unlink(log->lock);
  return -1;
}

static int close_log(const struct audit_log *log) { return close(log->fd) | unlink(log->lock); }

/* ---- the line before ---- */

static off_t last_feed(const char *bytes, off_t size) {
  while (size > 0 && bytes[size - 1] != '\n') size--;
  return size - 1;
}

/* Where the last line begins: after the last line feed before `end`. -1 when it cannot be read. */
static off_t line_start(int fd, off_t end) {
  static char bytes[CHUNK];
  while (end > 0) {
    off_t from = end > CHUNK ? end - CHUNK : 0;
    if (pread(fd, bytes, (size_t)(end - from), from) != end - from) return -1;
    off_t feed = last_feed(bytes, end - from);
    if (feed >= 0) return from + feed + 1;
    end = from;
  }
  return 0;
}

static int hash_range(int fd, off_t from, off_t end, char text[SHA256_TEXT]) {
  static char bytes[CHUNK];
  struct sha256 sum;
  sha256_begin(&sum);
  while (from < end) {
    ssize_t got = pread(fd, bytes, end - from < CHUNK ? (size_t)(end - from) : CHUNK, from);
    if (got <= 0) return -1;
    sha256_add(&sum, bytes, (size_t)got);
    from += got;
  }
  sha256_finish(&sum, text);
  return 0;
}

/* Its hash, and whether a line feed ends it. A writer that died half-way left a line without an end: it stays, `audit verify` names it. */
static int read_last_line(int fd, char hash[SHA256_TEXT], int *is_ended) {
  char last = '\n';
  off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0 || (size > 0 && pread(fd, &last, 1, size - 1) != 1)) return -1;
  *is_ended = last == '\n';
  off_t end = size > 0 && *is_ended ? size - 1 : size, start = line_start(fd, end);
  memcpy(hash, CHAIN_START, sizeof CHAIN_START);
  return start < 0 ? -1 : start == end ? 0 : hash_range(fd, start, end, hash);
}

/* ---- the line ---- */

/* NUL cannot be part of an argument, so no two commands have the same sum. */
static void hash_words(char **words, char text[SHA256_TEXT]) {
  struct sha256 sum;
  sha256_begin(&sum);
  for (; *words; words++) sha256_add(&sum, *words, strlen(*words) + 1);
  sha256_finish(&sum, text);
}

/* ISO 8601, UTC, as JavaScript writes it. */
static int write_time(char text[AUDIT_TIME]) {
  struct timespec now;
  struct tm parts;
  if (clock_gettime(CLOCK_REALTIME, &now) < 0 || !gmtime_r(&now.tv_sec, &parts)) return -1;
  size_t length = strftime(text, AUDIT_TIME, "%Y-%m-%dT%H:%M:%S", &parts);
  return length && snprintf(text + length, AUDIT_TIME - length, ".%03ldZ", now.tv_nsec / 1000000) == 5 ? 0 : -1;
}

static int append(int fd, const struct result *result) {
  struct audit_line line = {.decided_by = result->decided_by};
  int is_ended;
  if (write_time(line.time) < 0 || read_last_line(fd, line.previous_hash, &is_ended) < 0) return -1;
  if (!is_ended && write(fd, "\n", 1) != 1) return -1;
  hash_words(result->command, line.argv_hash);
  struct result recorded = *result;
  recorded.line = &line;
  return template_write(&recorded, V_RECORD, fd) == 0 ? 0 : -1;
}

int audit_is_on(const struct launchfile *file) {
  struct entry entry;
  return launchfile_find(file, V_AUDIT, &entry);
}

int audit_can_record(const struct launchfile *file) {
  struct audit_log log;
  struct entry entry;
  if (!launchfile_find(file, V_AUDIT, &entry)) return 1;
  return template_is_sound(file, V_RECORD) == 1 && open_log(&log, entry.word[0]) == 0 && close_log(&log) == 0;
}

int audit_append(const struct result *result) {
  struct audit_log log;
  struct entry entry;
  if (!launchfile_find(result->file, V_AUDIT, &entry) || open_log(&log, entry.word[0]) < 0) return -1;
  int done = append(log.fd, result);
  return close_log(&log) == 0 ? done : -1;
}
