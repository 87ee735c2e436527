#include "lib/layer.h"

#include "lib/files.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "lib/seal.h"
#include "lib/syscalls.h"
#include "lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

void layer_zone_name(size_t number, layer_name name) { snprintf(name, sizeof(layer_name), "zone.%zu", number); }

int is_copied(const struct entry *zone) { return zone->verb == V_ZONE && strcmp(zone->word[2], "copy") == 0; }

int layer_open_source(const struct entry *zone) {
  uint64_t device, inode;
  struct stat status;
  errno = EINVAL;
  if (parse_number(zone->word[3], UINT64_MAX, &device) < 0 || parse_number(zone->word[4], UINT64_MAX, &inode) < 0) return -1;
  int fd = sys_openat2(AT_FDCWD, zone->word[0], O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (fd < 0 || fstat(fd, &status) < 0) return close_with(fd, -1);
  if (status.st_dev != device || status.st_ino != inode) return errno = ESTALE, close_with(fd, -1);
  return fd;
}

static int open_short(int directory, const char *path, uint64_t flags) {
  return sys_openat2(directory, path, flags | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

/* Where to cut a path that is too long for one call: at the last slash that fits. 0 = nowhere. */
static size_t cut_of(const char *path, size_t length) {
  if (length < PATH_MAX) return length;
  size_t cut = PATH_MAX - 1;
  while (cut > 0 && path[cut] != '/') cut--;
  return cut;
}

/* The first `length` bytes of a path. */
static int open_first(int directory, const char *path, size_t length, uint64_t flags) {
  char part[PATH_MAX];
  int fd = directory;
  for (;;) {
    size_t cut = cut_of(path, length);
    int is_last = cut == length;
    if (cut == 0) return errno = length ? ENAMETOOLONG : EINVAL, fd == directory ? -1 : close_with(fd, -1);
    memcpy(part, path, cut);
    part[cut] = 0;
    int below = open_short(fd, part, is_last ? flags : O_PATH | O_DIRECTORY);
    if (fd != directory) close_with(fd, -1);
    if (below < 0 || is_last) return below;
    fd = below, path += cut + 1, length -= cut + 1;
  }
}

int open_beneath(int directory, const char *path, uint64_t flags) { return open_first(directory, path, strlen(path), flags); }

int open_parent_beneath(int directory, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  return slash ? open_first(directory, path, (size_t)(slash - path), O_PATH | O_DIRECTORY) : open_short(directory, ".", O_PATH | O_DIRECTORY);
}

/* ---- the record ---- */

/* Entries of protected paths stand behind their zone. */
static void put_zones(FILE *out, const struct launchfile *file) {
  struct entry entry;
  size_t position = 0;
  int is_ours = 0;
  while (launchfile_next(file, &position, &entry)) {
    if (entry.verb == V_ZONE) is_ours = is_layered(&entry);
    int is_of_zone = entry.verb == V_ZONE || entry.verb == V_PROTECT || entry.verb == V_GIT || entry.verb == V_HOME;
    if (entry.verb == V_PROFILE || entry.verb == V_KEEP || (is_of_zone && is_ours)) fwrite(entry.start, 1, (size_t)(entry.end - entry.start), out);
  }
}

struct timespec layer_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

static void put_since(FILE *out, struct timespec since) { fprintf(out, "since%c%lld%c%ld%c", 0, (long long)since.tv_sec, 0, since.tv_nsec, 0); }

/* The layer is written without a sync: it may be incomplete when the machine was started anew. */
static int put_boot(FILE *out) {
  char id[64];
  if (read_small(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, sizeof id) < 0) return -1;
  id[strcspn(id, "\n")] = 0;
  fprintf(out, "boot%c%s%c", 0, id, 0);
  return 0;
}

/* The runs directory is in the one with the secret, where this user has one. */
static int read_secret(const struct launchfile *file, unsigned char secret[SECRET_BYTES]) {
  struct entry runs;
  char directory[PATH_MAX];
  if (!launchfile_find(file, V_RUNS, &runs)) return -1;
  copy_text(directory, sizeof directory, runs.word[0]);
  char *slash = strrchr(directory, '/');
  if (slash) *slash = 0;
  return slash ? secret_read_in(directory, secret) : -1;
}

typedef char record_purpose[RUN_ID_MAX + 16];

static void purpose_of(const char *id, record_purpose purpose) { snprintf(purpose, sizeof(record_purpose), "layer %s", id); }

int layer_record(int layer, const char *id, const struct launchfile *file, struct timespec since) {
  unsigned char secret[SECRET_BYTES];
  record_purpose purpose;
  size_t size;
  FILE *out = text_begin();
  if (!out) return -1;
  fwrite(LAUNCH_FILE_MAGIC, 1, sizeof LAUNCH_FILE_MAGIC, out);
  put_zones(out, file);
  put_since(out, since);
  int has_boot = put_boot(out);
  fwrite("end", 1, sizeof "end", out);
  purpose_of(id, purpose);
  const char *bytes = text_end_sealed(out, read_secret(file, secret) == 0 ? secret : NULL, purpose, &size);
  int fd = bytes && has_boot == 0 ? openat(layer, LAYER_RECORD, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
  if (fd < 0 || write_all(fd, bytes, size) < 0) return close_with(fd, -1);
  return close(fd);
}

/* ---- the directory ---- */

/* Opened by name in a directory that only we can write: nothing in it is a link. */
static int open_locked(int holder, const char *id) {
  int fd = openat(holder, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? close_with(fd, -1) : fd;
}

int layer_create(const char *directory, const char *id) {
  if (!is_run_id(id)) return errno = EINVAL, -1;
  int holder = records_open(directory);
  if (holder < 0) return -1;
  return close_with(holder, mkdirat(holder, id, 0700) < 0 ? -1 : open_locked(holder, id));
}

int layer_open(const char *directory, const char *id) {
  if (!is_run_id(id)) return errno = ENOENT, -1;
  int holder = records_open(directory);
  return holder < 0 ? -1 : close_with(holder, open_locked(holder, id));
}

int layer_remove(const char *directory, const char *id) {
  if (!is_run_id(id)) return errno = EINVAL, -1;
  int holder = records_open(directory);
  return close_with(holder, holder < 0 ? -1 : remove_tree(holder, id));
}

/* ---- whether anything was changed ---- */

/* Of overlay, on a directory that hides the zone's, or that comes from another place. */
static int is_marked(int directory) {
  static const char *const marks[] = {"trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.opaque", "user.overlay.redirect"};
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (fgetxattr(directory, marks[i], NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP)) return 1;
  return 0;
}

static int has_other_mode(int upper, int lower) {
  struct stat now, before;
  return fstat(upper, &now) < 0 || fstat(lower, &before) < 0 || (now.st_mode & 0777) != (before.st_mode & 0777);
}

/* Each level takes stack, descriptors and a buffer of launch, and a command may make 100,000. */
#define DEEPEST 256

static int has_own_entries(int upper, int lower, int levels);

/* Both are closed. */
static int has_own(int upper, int lower, int levels) {
  int found = !levels || upper < 0 || lower < 0 || has_other_mode(upper, lower) || is_marked(upper) || has_own_entries(upper, lower, levels);
  return close_with(upper, close_with(lower, found));
}

/* Overlay makes each directory on the way to what a command has changed, and they stay when that is gone again: a command that makes a
 * file for a moment, as git does, has changed nothing. 1, also where it cannot be read or is too deep, or 0. */
static int has_own_entries(int upper, int lower, int levels) {
  DIR *entries = entries_open(upper);
  int found = 0;
  if (!entries) return 1;
  for (const char *name; !found && (name = entries_next(entries));)
    found = has_own(open_beneath(upper, name, O_RDONLY | O_DIRECTORY), open_beneath(lower, name, O_RDONLY | O_DIRECTORY), levels - 1);
  return entries_close(entries, found) != 0;
}

int layer_open_upper(int layer, size_t number) {
  char path[sizeof(layer_name) + sizeof LAYER_UPPER];
  layer_name name;
  layer_zone_name(number, name);
  snprintf(path, sizeof path, "%s/%s", name, LAYER_UPPER);
  return open_beneath(layer, path, O_RDONLY | O_DIRECTORY);
}

static int zone_may_have_changes(int layer, size_t number, const struct entry *zone) {
  int upper = layer_open_upper(layer, number);
  if (upper < 0) return errno != ENOENT;
  return has_own(upper, layer_open_source(zone), DEEPEST);
}

int layer_may_have_changes(int layer, const struct launchfile *file) {
  struct entry zone;
  size_t position = 0, number = 0;
  if (faccessat(layer, LAYER_RECORD, F_OK, 0) < 0 && errno == ENOENT) return 0;
  while (launchfile_next(file, &position, &zone))
    if (is_layered(&zone) && zone_may_have_changes(layer, number++, &zone)) return 1;
  return 0;
}

/* ---- going on ---- */

#define RECORD_MAX (16u << 20)

int layer_read_record(int layer, const char *id, struct launchfile *record, int *is_sealed) {
  size_t size;
  const char *problem;
  record_purpose purpose;
  int fd = open_beneath(layer, LAYER_RECORD, O_RDONLY);
  char *bytes = fd < 0 ? NULL : read_all(fd, RECORD_MAX, &size);
  close_with(fd, 0);
  if (!bytes) return -1;
  purpose_of(id, purpose);
  if (seal_take(bytes, &size, purpose, is_sealed) < 0) return -1;
  return launchfile_check(bytes, size, record, &problem) < 0 ? (errno = EBADMSG, -1) : 0;
}

static int next_layered(const struct launchfile *file, size_t *position, struct entry *zone) {
  while (launchfile_next(file, position, zone))
    if (is_layered(zone)) return 1;
  return 0;
}

/* Place inside and identity, in the same order. */
static int has_same_zones(const struct launchfile *a, const struct launchfile *b) {
  size_t in_a = 0, in_b = 0;
  struct entry one, other;
  for (;;) {
    int more = next_layered(a, &in_a, &one);
    if (more != next_layered(b, &in_b, &other)) return 0;
    if (!more) return 1;
    for (int word = 0; word < 5; word++)
      if (strcmp(one.word[word], other.word[word]) != 0) return 0;
  }
}

/* The mark of a volatile overlay means that its upper directory may be incomplete, and keeps it from being mounted again. That is
 * only so after a power cut, which a sync makes up for. */
static int clean_zone(int layer, size_t number) {
  layer_name name;
  layer_zone_name(number, name);
  int zone = sys_openat2(layer, name, O_RDONLY | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  return close_with(zone, zone < 0 ? -1 : remove_tree(zone, LAYER_WORK));
}

int layer_resume(int layer, const char *id, const struct launchfile *file) {
  struct launchfile record;
  struct entry zone;
  size_t position = 0, number = 0;
  int is_sealed;
  if (layer_read_record(layer, id, &record, &is_sealed) < 0) return -1;
  if (!has_same_zones(&record, file)) return errno = ESTALE, -1;
  if (syncfs(layer) < 0) return -1;
  for (; next_layered(file, &position, &zone); number++)
    if (!is_copied(&zone) && clean_zone(layer, number) < 0) return -1;
  return 0;
}
