#include "sandbox/overlay.h"

#include "lib/files.h"
#include "lib/layer.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

int overlay_open_layer(int layer, const char *directory, const char *id) {
  char path[PATH_MAX];
  struct stat locked, opened;
  if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, id) >= sizeof path) fail_with(ENAMETOOLONG, "stage: layer", directory);
  int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_MAGICLINKS);
  if (fd < 0 || fstat(fd, &opened) < 0 || fstat(layer, &locked) < 0) fail("stage: open layer", path);
  if (opened.st_dev != locked.st_dev || opened.st_ino != locked.st_ino) fail_with(ESTALE, "stage: layer was replaced", path);
  return fd;
}

/* ---- the upper directory ---- */

/* 0 where it is there: the zones are opened a second time, for another identity, or the run continues with a layer. */
static int make_directory(int parent, const char *name, const char *path) {
  if (mkdirat(parent, name, 0700) == 0) return 1;
  if (errno != EEXIST) fail("stage: make layer", path);
  return 0;
}

/* In an idmapped tree not even root may pass what belongs to an id that the map does not have. */
static void own_directory(int directory, const struct stat *zone, const char *path) {
  if (geteuid() != 0 || getuid() != 0) return;
  if (fchown(directory, zone->st_uid, zone->st_gid) < 0 && errno != EINVAL && errno != EPERM) fail("stage: own layer", path);
}

/* The upper root is what the command sees as the root of its zone. */
static void copy_root(int base, const struct stat *zone, const char *path) {
  int up = openat(base, LAYER_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (up < 0) fail("stage: open layer", path);
  own_directory(up, zone, path);
  struct timespec times[2] = {zone->st_atim, zone->st_mtim};
  if (fchmod(up, zone->st_mode & 07777) < 0 || futimens(up, times) < 0) fail("stage: mode of layer", path);
  close(up);
}

int overlay_make_upper(int layer, size_t number, const struct stat *zone, const char *path) {
  layer_name name;
  layer_zone_name(number, name);
  make_directory(layer, name, path);
  int base = openat(layer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (base < 0) fail("stage: open layer", path);
  own_directory(base, zone, path);
  make_directory(base, LAYER_WORK, path);
  int work = openat(base, LAYER_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (work < 0) fail("stage: open layer", path);
  own_directory(work, zone, path);
  close(work);
  if (make_directory(base, LAYER_UPPER, path)) copy_root(base, zone, path);
  int tree = sys_open_tree(base, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
  if (tree < 0) fail("stage: clone layer", path);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE};
  if (sys_mount_setattr(tree, 0, &attr) < 0) fail("stage: flags of layer", path);
  return close_with(base, tree);
}

int overlay_open_copy(int layer, size_t number, const char *path) {
  layer_name name;
  layer_zone_name(number, name);
  int base = open_beneath(layer, name, O_PATH | O_DIRECTORY), copy = base < 0 ? -1 : open_beneath(base, LAYER_UPPER, O_PATH | O_DIRECTORY);
  if (copy < 0) fail("stage: open copy", path);
  return close_with(base, copy);
}

/* ---- the mount ---- */

static void set_flag(int fs, const char *key) {
  if ((int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, NULL, 0) < 0) fail("stage: overlay", key);
}

static void set_option(int fs, const char *key, const char *value) {
  if (sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value) < 0) fail("stage: overlay", key);
}

/* Layers by descriptor: Linux 6.13, of detached trees 6.15. */
static void set_layer(int fs, const char *key, int directory) {
  if ((int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FD, key, NULL, directory) < 0) fail("stage: overlay", key);
}

static int open_in(int tree, const char *name, const char *path) {
  int fd = openat(tree, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) fail("stage: open layer", path);
  return fd;
}

/* Sets each option that decides about the marks in the upper directory, whatever the default of the kernel: apply reads these marks. */
static void set_options(int fs, const struct overlay *overlay) {
  set_flag(fs, "volatile"); /* no fsync at each copy-up: what is lost by a power cut was never applied */
  if (!overlay->is_privileged) return set_flag(fs, "userxattr");
  set_option(fs, "metacopy", "off");
  set_option(fs, "index", "off");
  set_option(fs, "redirect_dir", "on"); /* a directory of the zone can be renamed; the mark is trusted.*, which no command can set */
}

static void take_back_capabilities(const struct __user_cap_data_struct *data, const char *path) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  if (syscall(SYS_capset, &header, data) < 0) fail("stage: capset", path);
}

/*
 * Overlay makes its work directory, and later every file, with the ids that the mounter has at this moment. In an idmapped upper
 * directory there is one id that can own a file: the sandbox's. With another one the kernel mounts read-only and only logs it.
 * Changing the id takes the capabilities of file systems away, which overlay needs.
 */
static void create(int fs, const struct overlay *overlay) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (overlay->is_privileged) {
    if (syscall(SYS_capget, &header, data) < 0) fail("stage: capget", overlay->path);
    setfsgid(overlay->gid), setfsuid(overlay->uid);
    take_back_capabilities(data, overlay->path);
  }
  if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0) fail("stage: mount overlay", overlay->path);
  if (overlay->is_privileged) {
    setfsgid(getegid()), setfsuid(geteuid());
    take_back_capabilities(data, overlay->path);
  }
}

/* A mount that only reads would lose the work of the command at its first write. */
static void check_writable(int mount, const char *path) {
  struct statfs status;
  if (fstatfs(mount, &status) < 0) fail("stage: statfs of overlay", path);
  if (status.f_flags & ST_RDONLY) fail_with(EROFS, "stage: overlay is read-only", path);
}

int overlay_mount(const struct overlay *overlay) {
  int up = open_in(overlay->upper, LAYER_UPPER, overlay->path), work = open_in(overlay->upper, LAYER_WORK, overlay->path);
  int fs = sys_fsopen("overlay");
  if (fs < 0) fail("stage: fsopen", "overlay");
  set_layer(fs, "lowerdir+", overlay->lower);
  set_layer(fs, "upperdir", up);
  set_layer(fs, "workdir", work);
  set_options(fs, overlay);
  create(fs, overlay);
  int mount = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (mount < 0) fail("stage: fsmount", "overlay");
  check_writable(mount, overlay->path);
  close(up), close(work), close(fs), close(overlay->lower), close(overlay->upper);
  return mount;
}
