#include "tools/layer-stage.h"

#include "lib/files.h"
#include "lib/remove-tree.h"
#include "lib/report-failure.h"
#include "lib/run-record.h"
#include "lib/syscalls.h"
#include "sandbox/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mounts ---- */

/* proc_pid_fdinfo(5). */
static int mount_of(int fd, unsigned *mount) {
  char path[40], text[256];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  if (read_small(AT_FDCWD, path, text, sizeof text) < 0) return -1;
  const char *line = strstr(text, "mnt_id:");
  return line && sscanf(line, "mnt_id: %u", mount) == 1 ? 0 : (errno = EBADMSG, -1);
}

/* Whether names can be renamed between two directories. 1, 0, or -1 with errno. */
static int is_same_mount(int one, int other) {
  unsigned a, b;
  return mount_of(one, &a) < 0 || mount_of(other, &b) < 0 ? -1 : a == b;
}

/* ---- places ---- */

int stage_is_apart(const struct stage *stage) { return strcmp(stage->place, STAGE_IN_LAYER) != 0 && strcmp(stage->place, STAGE_NOWHERE) != 0; }

static int is_in_zone(const char *place) { return strcmp(place, STAGE_IN_ZONE) == 0; }

/* A directory that cannot be had, or is another user's, does not count. */
static int is_beside(const struct layer *layer, size_t zone, const char *holder) {
  int fd = records_open(holder);
  return fd < 0 ? 0 : close_with(fd, is_same_mount(fd, layer->zone[zone].lower));
}

const char *stage_place(const struct layer *layer, size_t zone) {
  int is_same = is_same_mount(layer->fd, layer->zone[zone].lower);
  if (is_same != 0) return is_same < 0 ? NULL : STAGE_IN_LAYER;
  for (size_t i = 0; i < layer->holders; i++) {
    int found = is_beside(layer, zone, layer->holder[i]);
    if (found != 0) return found < 0 ? NULL : layer->holder[i];
  }
  return geteuid() == 0 ? STAGE_IN_ZONE : STAGE_NOWHERE;
}

int stage_is_reachable(const struct stage *stage) {
  const struct layer *layer = stage->layer;
  int is_same = is_same_mount(layer->fd, layer->zone[stage->zone].lower);
  if (is_same < 0 || strcmp(stage->place, STAGE_NOWHERE) == 0) return is_same < 0 ? -1 : 1;
  if (!stage_is_apart(stage)) return is_same;
  return is_same ? 0 : is_in_zone(stage->place) ? 1 : is_beside(layer, stage->zone, stage->place);
}

/* ---- the directory ---- */

typedef char stage_name[RUN_ID_MAX + 48];

static void name_stage(const struct stage *stage, stage_name name) {
  if (is_in_zone(stage->place)) snprintf(name, sizeof(stage_name), ".llm-do-%s-%u", stage->layer->id, stage->number);
  else snprintf(name, sizeof(stage_name), ".stage-%s-%u-%zu", stage->layer->id, stage->number, stage->zone);
}

static int open_parent(const struct stage *stage) {
  return is_in_zone(stage->place) ? fcntl(stage->layer->zone[stage->zone].lower, F_DUPFD_CLOEXEC, 3) : records_open(stage->place);
}

/* Restores the time of the parent: files that we make and remove do not change the zone. */
static int keep_time(int parent, int done, const struct stat *before) {
  int error = errno;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before->st_mtim};
  if (futimens(parent, times) < 0 && done >= 0) return -1;
  errno = error;
  return done;
}

/* Owned by an id without a sandbox from the first moment on: a directory that another id could enter for a moment, it could keep open. */
static int make_closed(int parent, const char *name) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) < 0) return -1;
  setfsgid(STAGE_ID), setfsuid(STAGE_ID); /* takes the capabilities of file systems away */
  int done = syscall(SYS_capset, &header, data) < 0 ? -1 : mkdirat(parent, name, 0700), error = errno;
  setfsgid(getegid()), setfsuid(geteuid());
  if (syscall(SYS_capset, &header, data) < 0) return -1;
  errno = error;
  return done;
}

static int is_ours(const struct stage *stage, int fd) {
  struct stat status;
  uid_t owner = is_in_zone(stage->place) ? STAGE_ID : geteuid();
  return fstat(fd, &status) == 0 && status.st_uid == owner && (status.st_mode & 0777) == 0700;
}

static int open_in(const struct stage *stage, int parent) {
  stage_name name;
  name_stage(stage, name);
  int fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || is_ours(stage, fd)) return fd;
  return errno = ESTALE, close_with(fd, -1);
}

static int make_in(const struct stage *stage, int parent) {
  stage_name name;
  struct stat before;
  name_stage(stage, name);
  if (fstat(parent, &before) < 0) return -1;
  if ((is_in_zone(stage->place) ? make_closed(parent, name) : mkdirat(parent, name, 0700)) < 0) return -1;
  int fd = open_in(stage, parent);
  if (fd >= 0 && fchmod(fd, 0700) < 0) return close_with(fd, -1); /* it may have inherited the set-group-ID bit */
  return keep_time(parent, fd, &before);
}

int stage_reach(const struct stage *stage) {
  int parent = open_parent(stage), fd = parent < 0 ? -1 : open_in(stage, parent);
  return close_with(parent, parent >= 0 && fd < 0 && errno == ENOENT ? make_in(stage, parent) : fd);
}

/* The name may be another's by now: rmdir takes an empty directory only. */
static int remove_in(const struct stage *stage, int parent) {
  stage_name name;
  struct stat before;
  int fd = open_in(stage, parent);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  name_stage(stage, name);
  int done = close_with(fd, remove_contents(fd));
  if (done < 0 || fstat(parent, &before) < 0) return -1;
  return keep_time(parent, unlinkat(parent, name, AT_REMOVEDIR), &before);
}

int stage_remove(const struct stage *stage) {
  int parent = open_parent(stage);
  return parent < 0 ? -1 : close_with(parent, remove_in(stage, parent));
}

int stage_is_foreign(int error) { return error == ESTALE || error == ELOOP || error == ENOTDIR || error == EACCES || error == EPERM; }

int stage_remove_anywhere(const struct layer *layer, size_t zone, unsigned number) {
  struct stage stage = {layer, zone, number, STAGE_IN_ZONE, -1};
  if (geteuid() == 0 && stage_remove(&stage) < 0 && !stage_is_foreign(errno)) return -1;
  for (size_t i = 0; i < layer->holders; i++) {
    stage.place = layer->holder[i];
    if (faccessat(AT_FDCWD, stage.place, F_OK, 0) < 0) continue;
    if (stage_remove(&stage) < 0 && errno != ENOENT && !stage_is_foreign(errno)) return -1;
  }
  return 0;
}
