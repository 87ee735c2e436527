#include "lib/layer-copy.h"

#include "lib/files.h"
#include "lib/layer.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#define PERMISSIONS 0777
#define SMALL (16 << 10) /* a few blocks, so that holes do not matter */
#define XATTR_MAX (64 << 10) /* XATTR_SIZE_MAX and XATTR_LIST_MAX of linux/limits.h */

/* ---- content ---- */

static int write_at(int fd, const char *bytes, size_t size, off_t at) {
  for (ssize_t done; size > 0; bytes += done, size -= (size_t)done, at += done)
    if ((done = pwrite(fd, bytes, size, at)) < 0) return -1;
  return 0;
}

static int copy_by_hand(int from, int to, off_t at, off_t end) {
  static char bytes[1 << 16];
  while (at < end) {
    size_t wanted = end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes;
    ssize_t got = pread(from, bytes, wanted, at);
    if (got < 0 || (got > 0 && write_at(to, bytes, (size_t)got, at) < 0)) return -1;
    if (got == 0) return 0;
    at += got;
  }
  return 0;
}

static int copy_range(int from, int to, off_t at, off_t end) {
  while (at < end) {
    off_t out = at;
    ssize_t done = copy_file_range(from, &at, to, &out, (size_t)(end - at), 0);
    if (done < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) return copy_by_hand(from, to, at, end);
    if (done <= 0) return done < 0 ? -1 : 0;
  }
  return 0;
}

/* Shares the blocks where the file system can, and keeps holes. A small file is read and written, in two calls. */
static int copy_content(int from, int to, off_t size) {
  if (size <= SMALL) return copy_by_hand(from, to, 0, size);
  if (ioctl(to, FICLONE, from) == 0) return 0;
  for (off_t at = 0; at < size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    off_t end = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    if (end < 0 || copy_range(from, to, data, end) < 0) return -1;
    at = end;
  }
  return ftruncate(to, size);
}

/* ---- attributes ---- */

static int is_kept(const char *name) { return strncmp(name, "user.", 5) == 0; }

static int copy_xattr(int from, int to, const char *name) {
  static char value[XATTR_MAX];
  ssize_t size = fgetxattr(from, name, value, sizeof value);
  return size < 0 ? -1 : fsetxattr(to, name, value, (size_t)size, 0);
}

static int copy_user_xattrs(int from, int to) {
  static char names[XATTR_MAX];
  ssize_t size = flistxattr(from, names, sizeof names);
  if (size < 0) return errno == EOPNOTSUPP ? 0 : -1;
  for (char *name = names; name < names + size; name += strlen(name) + 1)
    if (is_kept(name) && copy_xattr(from, to, name) < 0 && errno != EOPNOTSUPP) return -1;
  return 0;
}

static int set_times(int directory, const char *name, const struct stat *status) {
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  return utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}

static int give_to(int directory, const char *name, const struct stat *owner) {
  return geteuid() == 0 ? fchownat(directory, name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) : 0;
}

int copy_attributes(int directory, const struct stat *status) {
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  return fchmod(directory, status->st_mode & PERMISSIONS) < 0 ? -1 : futimens(directory, times);
}

/* ---- objects ---- */

static int close_both(int one, int other, int done) {
  int error = errno;
  if (one >= 0) close(one);
  if (other >= 0 && close(other) < 0) return -1;
  errno = error;
  return done;
}

/* The attributes of a file that is closed to its owner cannot be read. Its content is copied all the same. */
static int keep_xattrs(const struct object *object, int to) {
  int old = object->host < 0 ? -1 : open_beneath(object->host, object->name, O_RDONLY | O_NONBLOCK);
  if (old < 0) return object->host < 0 || errno == ENOENT || errno == EACCES || errno == ELOOP ? 0 : -1;
  return close_both(old, -1, copy_user_xattrs(old, to));
}

static int fill_file(const struct object *object, int from, int to) {
  if (copy_content(from, to, object->status.st_size) < 0 || keep_xattrs(object, to) < 0) return -1;
  return fchmod(to, object->status.st_mode & PERMISSIONS);
}

static int copy_file(const struct object *object, int to, const char *new_name) {
  int source = open_beneath(object->from, object->name, O_RDONLY | O_NONBLOCK);
  int made = source < 0 ? -1 : openat(to, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  return close_both(source, made, made < 0 ? -1 : fill_file(object, source, made));
}

static int copy_link(int from, const char *name, int to, const char *new_name) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(from, name, target, sizeof target - 1);
  if (length < 0) return -1;
  target[length] = 0;
  return symlinkat(target, to, new_name);
}

int copy_object(const struct object *object, int to, const char *new_name, const struct stat *owner) {
  const mode_t mode = object->status.st_mode;
  int done;
  if (S_ISDIR(mode)) return mkdirat(to, new_name, 0700) < 0 ? -1 : give_to(to, new_name, owner);
  if (S_ISREG(mode)) done = copy_file(object, to, new_name);
  else if (S_ISLNK(mode)) done = copy_link(object->from, object->name, to, new_name);
  else return errno = EPERM, -1;
  return done < 0 || give_to(to, new_name, owner) < 0 ? -1 : set_times(to, new_name, &object->status);
}

int copy_to_read(int from, const char *name, const struct stat *status, int to, const char *new_name) {
  if (S_ISLNK(status->st_mode)) return copy_link(from, name, to, new_name);
  mode_t mode = status->st_mode & 0111 ? 0700 : 0600;
  int source = open_beneath(from, name, O_RDONLY | O_NONBLOCK);
  int made = source < 0 ? -1 : openat(to, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  return close_both(source, made, made < 0 ? -1 : copy_content(source, made, status->st_size));
}

/* ---- as it is ---- */

static int copy_all_xattrs(int from, int to) {
  static char names[XATTR_MAX];
  ssize_t size = flistxattr(from, names, sizeof names);
  if (size < 0) return errno == EOPNOTSUPP ? 0 : -1;
  for (char *name = names; name < names + size; name += strlen(name) + 1)
    if (copy_xattr(from, to, name) < 0 && errno != EOPNOTSUPP && errno != EPERM) return -1; /* labels are the kernel's to give */
  return 0;
}

/* A user's file can have a group that the user has left. */
static int keep_owner(int fd, const struct stat *status) { return fchown(fd, status->st_uid, status->st_gid) < 0 && geteuid() == 0 ? -1 : 0; }

/* The owner first: giving a file away takes set-id bits and capabilities off it. */
static int finish_whole(int from, int to, const struct stat *status) {
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  if (keep_owner(to, status) < 0 || copy_all_xattrs(from, to) < 0) return -1;
  return fchmod(to, status->st_mode & 07777) < 0 || futimens(to, times) < 0 ? -1 : 0;
}

static int copy_whole_file(int from, const char *name, const struct stat *status, int to, const char *new_name) {
  int source = open_beneath(from, name, O_RDONLY | O_NONBLOCK);
  int made = source < 0 ? -1 : openat(to, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  int done = made < 0 || copy_content(source, made, status->st_size) < 0 ? -1 : finish_whole(source, made, status);
  return close_both(source, made, done);
}

static int copy_entries(int from, int to) {
  int done = 0;
  DIR *entries = entries_open(from);
  if (!entries) return -1;
  for (const char *name; done == 0 && (name = entries_next(entries));) done = copy_whole(from, name, to, name);
  return entries_close(entries, done);
}

int copy_tree(int source, int to, const char *new_name) {
  struct stat status;
  int made = fstat(source, &status) < 0 || mkdirat(to, new_name, 0700) < 0 ? -1 : open_beneath(to, new_name, O_RDONLY | O_DIRECTORY);
  int done = made < 0 || copy_entries(source, made) < 0 ? -1 : finish_whole(source, made, &status);
  return close_both(-1, made, done);
}

static int copy_whole_directory(int from, const char *name, int to, const char *new_name) {
  int source = open_beneath(from, name, O_RDONLY | O_DIRECTORY);
  return close_both(source, -1, source < 0 ? -1 : copy_tree(source, to, new_name));
}

int copy_whole(int from, const char *name, int to, const char *new_name) {
  struct stat status;
  if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  if (S_ISREG(status.st_mode)) return copy_whole_file(from, name, &status, to, new_name);
  if (S_ISDIR(status.st_mode)) return copy_whole_directory(from, name, to, new_name);
  int done = S_ISLNK(status.st_mode) ? copy_link(from, name, to, new_name) : mknodat(to, new_name, status.st_mode, status.st_rdev);
  if (done < 0) return -1;
  if (fchownat(to, new_name, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) < 0 && geteuid() == 0) return -1;
  if (!S_ISLNK(status.st_mode) && fchmodat(to, new_name, status.st_mode & 07777, 0) < 0) return -1;
  return set_times(to, new_name, &status);
}
