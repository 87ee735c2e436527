#include "tools/layer-stage.h"

#include "lib/remove-tree.h"
#include "lib/run-record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mounts ---- */

/* proc_pid_fdinfo(5). */
static int mount_of(int fd, unsigned *mount) {
  char path[40], text[256];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  int info = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = info < 0 ? -1 : read(info, text, sizeof text - 1);
  if (info >= 0) close(info);
  if (length < 0) return -1;
  text[length] = 0;
  const char *line = strstr(text, "mnt_id:");
  return line && sscanf(line, "mnt_id: %u", mount) == 1 ? 0 : (errno = EBADMSG, -1);
}

int stage_is_needed(const struct layer *layer, size_t zone) {
  unsigned own, other;
  if (mount_of(layer->fd, &own) < 0 || mount_of(layer->zone[zone].lower, &other) < 0) return -1;
  return own != other;
}

/* ---- the directory ---- */

typedef char stage_name[RUN_ID_MAX + 32];

static void name_stage(const struct layer *layer, unsigned number, stage_name name) {
  snprintf(name, sizeof(stage_name), ".llm-do-%s-%u", layer->id, number);
}

/* What is made and removed by us is no change of the zone. */
static int keep_time(int root, int done, const struct stat *before) {
  int error = errno;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, before->st_mtim};
  if (futimens(root, times) < 0 && done >= 0) return -1;
  errno = error;
  return done;
}

static int is_ours(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 07777) == 0700;
}

int stage_open(const struct layer *layer, size_t zone, unsigned number) {
  stage_name name;
  name_stage(layer, number, name);
  int fd = open_beneath(layer->zone[zone].lower, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || is_ours(fd)) return fd;
  close(fd);
  return errno = ESTALE, -1;
}

int stage_make(const struct layer *layer, size_t zone, unsigned number) {
  stage_name name;
  struct stat before;
  int root = layer->zone[zone].lower;
  name_stage(layer, number, name);
  if (fstat(root, &before) < 0 || mkdirat(root, name, 0700) < 0) return -1;
  int fd = stage_open(layer, zone, number);
  if (fd >= 0 && fchmod(fd, 0700) < 0) return close(fd), -1; /* it may have inherited the set-group-ID bit */
  return keep_time(root, fd, &before);
}

int stage_is_foreign(int error) { return error == ESTALE || error == ELOOP || error == ENOTDIR || error == EACCES; }

int stage_remove(const struct layer *layer, size_t zone, unsigned number) {
  stage_name name;
  struct stat before;
  int root = layer->zone[zone].lower, fd = stage_open(layer, zone, number);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  name_stage(layer, number, name);
  int done = remove_contents(fd);
  close(fd);
  if (done < 0 || fstat(root, &before) < 0) return -1;
  return keep_time(root, unlinkat(root, name, AT_REMOVEDIR), &before);
}
