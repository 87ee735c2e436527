#include "client/audit-log.h"

#include "lib/files.h"
#include "lib/sha256.h"
#include "lib/file-lock.h"

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
#define PATIENCE_MS 20

/* ---- the file and its lock ---- */

static struct audit_log {
  char path[PATH_MAX], lock_path[PATH_MAX + sizeof LOCK_SUFFIX];
  int fd, lock;
} audit = {.fd = -1, .lock = -1};

/* The directory is resolved, the file itself is not: every spelling of one log takes the same lock. */
static int find_log(const char *file) {
  char directory[PATH_MAX], real[PATH_MAX];
  const char *slash = strrchr(file, '/');
  if (!slash || !slash[1] || (size_t)(slash - file) >= sizeof directory) return -1;
  memcpy(directory, file, (size_t)(slash - file));
  directory[slash - file] = 0;
  if (!realpath(*directory ? directory : "/", real)) return -1;
  size_t length = (size_t)snprintf(audit.path, sizeof audit.path, "%s%s", strcmp(real, "/") == 0 ? "" : real, slash);
  snprintf(audit.lock_path, sizeof audit.lock_path, "%s" LOCK_SUFFIX, audit.path);
  return length < sizeof audit.path ? 0 : -1;
}

/* O_NONBLOCK: a FIFO must be refused, not waited for. */
static int open_file(const char *path) {
  struct stat status;
  int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  return close_with(fd, -1);
}

static void close_log(void) {
  if (audit.fd >= 0) close(audit.fd);
  if (audit.lock >= 0) close(audit.lock);
  audit.fd = audit.lock = -1;
}

/* Both stay open until the run is over: what it does to the names does not reach its line. */
static int open_log(const char *file, off_t bytes) {
  if (find_log(file) < 0 || (audit.fd = open_file(audit.path)) < 0 || (audit.lock = lock_open(audit.lock_path)) < 0) return -1;
  if (lock_take(audit.lock, PATIENCE_MS) < 0) return -1;
  int failed = reserve_at_end(audit.fd, bytes);
  return lock_release(audit.lock) < 0 ? -1 : failed;
}

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

/* A line that cannot be written whole is taken back: under the lock no other writer has added one after it. */
static int add_record(const struct result *result) {
  struct audit_line line = {.decided_by = result->decided_by};
  int is_ended;
  off_t end = lseek(audit.fd, 0, SEEK_END);
  if (end < 0 || write_time(line.time) < 0 || read_last_line(audit.fd, line.previous_hash, &is_ended) < 0) return -1;
  if (!is_ended && write(audit.fd, "\n", 1) != 1) return -1;
  hash_words(result->command, line.argv_hash);
  if (result_write_record(result, &line, audit.fd) == 0) return 0;
  (void)!ftruncate(audit.fd, end);
  return -1;
}

int audit_is_on(const struct launchfile *file) {
  struct entry entry;
  return launchfile_find(file, V_AUDIT, &entry);
}

static off_t size_of(char *const *words) {
  off_t bytes = 0;
  for (; *words; words++) bytes += (off_t)strlen(*words);
  return bytes;
}

int audit_open(const struct launchfile *file, char *const *command) {
  struct entry entry;
  if (!launchfile_find(file, V_AUDIT, &entry)) return 0;
  off_t bytes = AUDIT_ROOM + AUDIT_ROOM_PER_BYTE * size_of(command);
  if (open_log(entry.word[0], bytes) == 0) return 0;
  close_log();
  return -1;
}

int audit_append(const struct result *result) {
  if (audit.fd < 0 || lock_take(audit.lock, PATIENCE_MS) < 0) return -1;
  int done = add_record(result);
  return lock_release(audit.lock) < 0 ? -1 : done;
}

int audit_hand_over(char *text, size_t room) {
  text[0] = 0;
  if (audit.fd < 0) return 0;
  if (fcntl(audit.fd, F_SETFD, 0) < 0 || fcntl(audit.lock, F_SETFD, 0) < 0) return -1;
  return (size_t)snprintf(text, room, "%d %d", audit.fd, audit.lock) < room ? 0 : -1;
}
