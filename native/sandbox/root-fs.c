#include "sandbox/root-fs.h"

#include "lib/any-directory.h"
#include "lib/covers.h"
#include "lib/files.h"
#include "lib/pages.h"
#include "lib/init-protocol.h"
#include "sandbox/cover.h"
#include "sandbox/host-root.h"
#include "sandbox/namespaces.h"
#include "lib/report-failure.h"
#include "sandbox/idmap.h"
#include "sandbox/overlay.h"
#include "lib/layer.h"
#include "lib/syscalls.h"
#include "lib/fd-message.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define ZONES_MAX 512
#define OWN_DEVICES_MAX 128
#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* Numeric strings that file systems and id maps take. */
typedef char number_text[24];

struct zone {
  const char *source, *target;
  uint64_t device, inode;
  int writable;
  int layered; /* copy-on-write: the tree becomes the lower directory of an overlay */
  int copied;  /* copy-on-write: the tree is that of a copy */
  uid_t uid; /* owner of the zone's root */
  gid_t gid;
  int tree; /* detached clone */
  int upper; /* of a layered zone, detached */
};

/* A directory of the tree, by its path without a slash at the end; fd -1 = none. */
struct parent {
  int fd;
  int is_ours;
  char path[PATH_MAX];
};

struct staging {
  const struct stage *stage;
  int privileged; /* root with CAP_SYS_ADMIN: no user namespace of our own, idmapped zones */
  uid_t uid;      /* the sandbox's on the host */
  gid_t gid;
  int root; /* O_PATH of the tree's "/" */
  int below; /* of what lies under it */
  int root_map; /* of a blank sandbox: root's id map; else -1 */
  int zones;
  int has_covers;
  int layer;     /* directory of copy-on-write zones; -1 without */
  size_t layers; /* directories made in the layer */
  int own_count;
  int scratch_count;
  struct engine engine;
  /* Large members come last, as in struct run. */
  dev_t own[OWN_DEVICES_MAX]; /* file systems that we made: the only ones in which mount points are created */
  int scratch[MESSAGE_DESCRIPTORS_MAX]; /* for the memory watchdog */
  struct parent parent;
  struct guard guard; /* of the writable zones, once launch has told it */
  struct zone zone[ZONES_MAX];
};

/* ---- mount points ---- */

static int is_ours(const struct staging *staging, int directory) {
  struct stat status;
  if (fstat(directory, &status) < 0) return 0;
  for (int i = 0; i < staging->own_count; i++)
    if (staging->own[i] == status.st_dev) return 1;
  return 0;
}

/* In a file system of our own. Returns whether it is new. */
static int make_entry(int parent, const char *name, int directory, const char *target) {
  int made = directory ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0644, 0);
  if (made < 0 && errno != EEXIST) fail("stage: make mount point", target);
  return made == 0;
}

static int open_entry(int parent, const char *name, const char *target) {
  int entry = sys_openat2(parent, name, O_PATH | O_NOFOLLOW, NO_LINKS | RESOLVE_BENEATH);
  if (entry < 0) fail("stage: mount point", target);
  return entry;
}

static int open_each(const struct staging *staging, char *path, const char *target) {
  int at = dup(staging->root);
  if (at < 0) fail("stage: dup", target);
  char *rest = NULL;
  for (char *name = strtok_r(path, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
    if (is_ours(staging, at)) make_entry(at, name, 1, target);
    int next = open_entry(at, name, target);
    close(at);
    at = next;
  }
  return at;
}

/* Most entries have the parent of the one before. It stays open until something is mounted over it. */
static int open_parent(struct staging *staging, const char *path, size_t length, const char *target) {
  struct parent *parent = &staging->parent;
  if (parent->fd >= 0 && strlen(parent->path) == length && memcmp(parent->path, path, length) == 0) return parent->fd;
  char names[PATH_MAX];
  if (length >= sizeof names) fail_with(EINVAL, "stage: target", target);
  memcpy(names, path, length);
  names[length] = 0;
  if (parent->fd >= 0) close(parent->fd);
  copy_text(parent->path, sizeof parent->path, names);
  parent->fd = open_each(staging, names, target);
  parent->is_ours = is_ours(staging, parent->fd);
  return parent->fd;
}

static void forget_parent(struct staging *staging) {
  if (staging->parent.fd >= 0) close(staging->parent.fd);
  staging->parent.fd = -1;
}

/* The last name of `target`, whose directory becomes `parent`; "" = it is the root. */
static const char *open_directory_of(struct staging *staging, const char *target) {
  const char *slash = strrchr(target, '/');
  if (target[0] != '/') fail_with(EINVAL, "stage: target", target);
  open_parent(staging, target, (size_t)(slash - target), target);
  return slash + 1;
}

/* Opens `target` below the tree's root without following a link; makes what is missing, in our own file systems only. */
static int open_point(struct staging *staging, const char *target, int directory) {
  const char *name = open_directory_of(staging, target);
  const struct parent *parent = &staging->parent;
  if (!*name) return dup(parent->fd);
  if (parent->is_ours) make_entry(parent->fd, name, directory, target);
  return open_entry(parent->fd, name, target);
}

/* A file that was just made in our own file system cannot be a link, so it need not be opened. */
static int move_to_new(struct staging *staging, int tree, const char *target, int directory) {
  const char *name = open_directory_of(staging, target);
  const struct parent *parent = &staging->parent;
  if (!*name || !parent->is_ours || !make_entry(parent->fd, name, directory, target)) return 0;
  if (sys_move_mount_at(tree, parent->fd, name, 0) < 0) fail("stage: move_mount", target);
  return 1;
}

static void move_over(struct staging *staging, int tree, const char *target, int directory) {
  int point = open_point(staging, target, directory);
  if (sys_move_mount(tree, point) < 0) fail("stage: move_mount", target);
  close(point);
}

static void attach(struct staging *staging, int tree, const char *target) {
  struct stat status;
  if (fstat(tree, &status) < 0) fail("stage: stat", target);
  int directory = S_ISDIR(status.st_mode);
  if (!move_to_new(staging, tree, target, directory)) move_over(staging, tree, target, directory);
  if (strncmp(staging->parent.path, target, strlen(target)) == 0) forget_parent(staging);
}

/* ---- file systems of our own ---- */

static void set_option(int fs, const char *key, const char *value) {
  if (sys_fsconfig(fs, FSCONFIG_SET_STRING, key, value) < 0) fail("stage: fsconfig", key);
}

static void set_number(int fs, const char *key, unsigned long number) {
  number_text text;
  snprintf(text, sizeof text, "%lu", number);
  set_option(fs, key, text);
}

static int finish_mount(int fs, unsigned attributes, const char *type) {
  if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0) fail("stage: create file system", type);
  int mount = sys_fsmount(fs, attributes);
  if (mount < 0) fail("stage: fsmount", type);
  return close_with(fs, mount);
}

static int open_filesystem(const char *type) {
  int fs = sys_fsopen(type);
  if (fs < 0) fail("stage: fsopen", type);
  return fs;
}

static int new_tmpfs(struct staging *staging, uint64_t size, uint64_t inodes, unsigned mode, int for_sandbox) {
  int fs = open_filesystem("tmpfs");
  char octal[8];
  snprintf(octal, sizeof octal, "%o", mode);
  set_option(fs, "mode", octal);
  set_number(fs, "size", size);
  set_number(fs, "nr_inodes", inodes);
  if (for_sandbox) {
    set_number(fs, "uid", staging->uid);
    set_number(fs, "gid", staging->gid);
  }
  int mount = finish_mount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, "tmpfs");
  struct stat status;
  if (fstat(mount, &status) < 0) fail("stage: stat", "tmpfs");
  if (staging->own_count == OWN_DEVICES_MAX) fail_with(E2BIG, "stage: too many tmpfs", "");
  staging->own[staging->own_count++] = status.st_dev;
  return mount;
}

/* Enough for the mount points and small files of any plan; nothing can be written to it after make_readonly. */
#define ROOT_BYTES (4u << 20)
#define ROOT_INODES 4096

static void make_root(struct staging *staging) {
  int mount = new_tmpfs(staging, ROOT_BYTES, ROOT_INODES, 0755, 0);
  int point = sys_openat2(AT_FDCWD, STAGING_DIRECTORY, O_PATH | O_DIRECTORY, NO_LINKS);
  if (point < 0 || sys_move_mount(mount, point) < 0) fail("stage: mount root", STAGING_DIRECTORY);
  staging->below = point;
  staging->root = mount; /* an O_PATH-like handle of the mount's root, now attached */
}

static void make_readonly(struct staging *staging, const char *target) {
  int mount = open_point(staging, target, 1);
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  if (sys_mount_setattr(mount, 0, &attr) < 0) fail("stage: make read-only", target);
  close(mount);
}

/* ---- /dev ---- */

static const struct {
  const char *path;
  unsigned major, minor;
} DEVICES[] = {
    /* Numbers: Documentation/admin-guide/devices.txt. Something else at that path is not what we take it for. */
    {"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

static const struct {
  const char *target, *link;
} DEVICE_LINKS[] = {
    {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
    {"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"},
};

/* Takes `source`. */
static void show_device(struct staging *staging, int source, const char *target, uint64_t attributes) {
  int tree = cover_clone(source, target);
  cover_attributes(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | attributes, target);
  attach(staging, tree, target);
  close(tree);
  close(source);
}

static void bind_device(struct staging *staging, const char *path, dev_t number) {
  int source = sys_openat2(AT_FDCWD, path, O_PATH, NO_LINKS);
  struct stat status;
  if (source < 0 || fstat(source, &status) < 0) fail("stage: open device", path);
  if (!S_ISCHR(status.st_mode) || status.st_rdev != number) fail_with(ENODEV, "stage: not that device", path);
  show_device(staging, source, path, 0);
}

/* Read-only is the node, whose mode and times stay: the device can be written. */
static void show_node(struct staging *staging, const struct entry *entry) {
  show_device(staging, host_root_open_node(entry), entry->word[1], MOUNT_ATTR_RDONLY);
}

static void make_symlink(struct staging *staging, const char *target, const char *link) {
  const char *name = open_directory_of(staging, target);
  if (!*name) fail_with(EINVAL, "stage: symlink", target);
  if (!staging->parent.is_ours) fail_with(EROFS, "stage: symlink", target);
  if (symlinkat(link, staging->parent.fd, name) < 0) fail("stage: symlink", target);
}

static void make_dev(struct staging *staging) {
  int dev = new_tmpfs(staging, 64 << 10, 64, 0755, 0);
  attach(staging, dev, "/dev");
  close(dev);
  for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++)
    bind_device(staging, DEVICES[i].path, makedev(DEVICES[i].major, DEVICES[i].minor));
  for (size_t i = 0; i < sizeof DEVICE_LINKS / sizeof *DEVICE_LINKS; i++)
    make_symlink(staging, DEVICE_LINKS[i].target, DEVICE_LINKS[i].link);
  int fs = open_filesystem("devpts");
  set_option(fs, "ptmxmode", "0666");
  set_option(fs, "mode", "0620");
  set_option(fs, "max", "64");
  int pts = finish_mount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "devpts");
  attach(staging, pts, "/dev/pts");
  close(pts);
}

/* ---- zones ---- */

static struct zone *add_zone(struct staging *staging, const struct entry *entry) {
  if (staging->zones == ZONES_MAX) fail_with(E2BIG, "stage: too many zones", entry->word[0]);
  int copied = is_copied(entry);
  struct zone *zone = &staging->zone[staging->zones++];
  *zone = (struct zone){.source = entry->word[0],
                        .target = entry->word[1],
                        .writable = copied || strcmp(entry->word[2], "rw") == 0,
                        .layered = is_layered(entry) && !copied,
                        .copied = copied};
  return zone;
}

static void read_zones(struct staging *staging) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next_of(staging->stage->file, V_ZONE, &position, &entry)) {
    if (launchfile_is_blank(&entry)) continue;
    struct zone *zone = add_zone(staging, &entry);
    if (parse_number(entry.word[3], UINT64_MAX, &zone->device) < 0 || parse_number(entry.word[4], UINT64_MAX, &zone->inode) < 0)
      fail_with(EINVAL, "stage: zone identity", zone->source);
  }
}

/* Opens a zone's source once. A source that was swapped for a link or another directory after planning is refused here. */
static void open_zone(struct staging *staging, struct zone *zone) {
  int source = sys_openat2(AT_FDCWD, zone->source, O_PATH, NO_LINKS);
  struct stat status;
  if (source < 0 || fstat(source, &status) < 0) fail("stage: open zone", zone->source);
  if (status.st_dev != zone->device || status.st_ino != zone->inode) fail_with(ESTALE, "stage: zone was replaced", zone->source);
  zone->uid = status.st_uid;
  zone->gid = status.st_gid;
  if (zone->copied) close(source), source = overlay_open_copy(staging->layer, staging->layers++, zone->source);
  zone->tree = cover_clone(source, zone->source);
  cover_attributes(zone->tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (zone->writable ? 0 : MOUNT_ATTR_RDONLY), zone->source);
  if (zone->layered) zone->upper = overlay_make_upper(staging->layer, staging->layers++, &status, zone->source);
  close(source);
}

static void open_layer(struct staging *staging) {
  struct entry cow;
  staging->layer = launchfile_find(staging->stage->file, V_COW, &cow) ? overlay_open_layer(staging->stage->layer, cow.word[0], staging->stage->layer_id) : -1;
}

static void open_zones(struct staging *staging) {
  for (int i = 0; i < staging->zones; i++) open_zone(staging, &staging->zone[i]);
}

static void layer_zones(struct staging *staging) {
  for (int i = 0; i < staging->zones; i++) {
    struct zone *zone = &staging->zone[i];
    if (!zone->layered) continue;
    struct overlay overlay = {zone->tree, zone->upper, staging->privileged, staging->uid, staging->gid, zone->source};
    zone->tree = overlay_mount(&overlay);
  }
}

/* A namespace takes as long as all the rest of a zone: in a blank sandbox that for root's directories is made before they are known. */
static int open_map(const struct staging *staging, const struct zone *zone) {
  int is_ready = staging->root_map >= 0 && zone->uid == 0 && zone->gid == 0;
  int map = is_ready ? dup(staging->root_map) : idmap_open(zone->uid, zone->gid, staging->uid, staging->gid);
  if (map < 0) fail("stage: make id map", zone->source);
  return map;
}

/*
 * Root only. Each zone becomes an idmapped mount in which the owner of its root directory is the sandbox user. A file
 * system that cannot be idmapped is shown as it is, where everything belongs to others; for a writable zone that is
 * only right when the sandbox runs as the zone's owner, and root's own zones are refused. Returns the one that has failed, with errno.
 */
static const struct zone *idmap_zones(struct staging *staging) {
  const struct zone *mapped = NULL; /* most zones have the owner of the one before: a namespace costs more than a mount */
  int map = -1;
  for (int i = 0; i < staging->zones; i++) {
    const struct zone *zone = &staging->zone[i];
    if (zone->uid == staging->uid && zone->gid == staging->gid) continue;
    if (!mapped || mapped->uid != zone->uid || mapped->gid != zone->gid) {
      if (map >= 0) close(map);
      map = open_map(staging, zone);
      mapped = zone;
    }
    int is_tree_mapped = idmap_apply(zone->tree, map) == 0;
    if (is_tree_mapped && (!zone->layered || idmap_apply(zone->upper, map) == 0)) continue;
    if (is_tree_mapped && zone->uid == 0) fail("stage: idmap layer of root", zone->source);
    if (zone->writable || zone->layered) return (void)close_with(map, -1), zone;
  }
  (void)close_with(map, 0);
  return NULL;
}

/* Launch outlives the sandbox, so its pid is not reused meanwhile; ours is free again as soon as the tree stands. */
static uid_t fresh_id(const struct stage *stage) { return FIRST_FRESH_ID + (uid_t)stage->launch; }

static void choose_identity_of_root(struct staging *staging) {
  staging->uid = fresh_id(staging->stage);
  staging->gid = (gid_t)staging->uid;
  open_zones(staging);
  const struct zone *failed = idmap_zones(staging);
  if (!failed) return;
  if (failed->uid == 0) fail("stage: idmap zone of root", failed->source);
  staging->uid = failed->uid;
  staging->gid = failed->gid;
  for (int i = 0; i < staging->zones; i++) {
    close(staging->zone[i].tree);
    if (staging->zone[i].layered) close(staging->zone[i].upper);
  }
  staging->layers = 0;
  open_zones(staging); /* an idmap cannot be changed once it is set */
  if ((failed = idmap_zones(staging))) fail("stage: idmap zone", failed->source);
}

/* Root without CAP_SYS_ADMIN (a container) cannot idmap: it runs as the owner of its writable zones. */
static void choose_identity_of_weak_root(struct staging *staging) {
  staging->uid = fresh_id(staging->stage);
  staging->gid = (gid_t)staging->uid;
  for (int i = 0; i < staging->zones; i++) {
    struct stat status;
    const struct zone *zone = &staging->zone[i];
    if (!zone->writable) continue;
    if (stat(zone->source, &status) < 0) fail("stage: stat zone", zone->source);
    if (status.st_uid == 0) fail_with(EPERM, "stage: idmap zone of root", zone->source);
    staging->uid = status.st_uid;
    staging->gid = status.st_gid;
  }
}

/* ---- protected and hidden paths ---- */

static const struct guard *covers_of_launch(struct staging *staging) {
  if (!staging->has_covers && covers_receive(staging->stage->control, &staging->guard) < 0) fail("stage: receive covers", "");
  staging->has_covers = 1;
  return &staging->guard;
}

/* Before the first zone: a sandbox may need them later, when nothing can be made in its root any more. */
static void make_empty(struct staging *staging, const char *path, int directory) {
  int point = open_point(staging, path, directory);
  if (chmod(fd_path(point).text, directory ? 0555 : 0444) < 0) fail("stage: empty file", path);
  close(point);
}

static void make_empties(struct staging *staging) {
  struct entry hide;
  if (!launchfile_find(staging->stage->file, V_HIDE, &hide)) return;
  make_empty(staging, EMPTY_DIRECTORY, 1);
  make_empty(staging, EMPTY_FILE, 0);
}

/* A continued layer has more names than the directory below it, such as those that were renamed. */
static void hide_in_layer(struct staging *staging, int root, const struct entry *entry) {
  struct hide hide;
  if (hide_read(&hide, staging->stage->file, entry) < 0) fail("stage: memory", entry->word[1]);
  struct walk walk = {.zone = root, .hide = &hide, .for_linked = 0, .entries_max = WALK_ENTRIES_MAX};
  if (hide.patterns > 0 && walk_zone(&walk) < 0) fail("stage: hide", walk.at);
  for (size_t i = 0; i < walk.count; i++)
    cover_hide(staging->root, root, &(struct guard_cover){.path = walk.find[i].path, .hidden = HIDDEN_EMPTY}, 1);
  walk_free(&walk);
  hide_free(&hide);
}

/* Closes the names that launch found in the zone. In a continued layer it also closes the names to hide. */
static void cover(struct staging *staging, const struct entry *entry) {
  const struct guard_zone *zone = covers_are_sent(staging->stage->file) ? guard_zone_at(covers_of_launch(staging), entry->word[1]) : NULL;
  struct entry cow;
  int is_continued = is_layered(entry) && launchfile_find(staging->stage->file, V_COW, &cow) && strcmp(cow.word[1], "new") != 0;
  if (!is_continued && (!zone || zone->covers == 0)) return;
  int root = open_point(staging, entry->word[1], 1);
  if (is_continued) hide_in_layer(staging, root, entry);
  if (zone) cover_zone(staging->root, root, zone, strcmp(entry->word[2], "ro") != 0);
  close(root);
}

/* ---- the tree ---- */

/* One that is there already, for writing. */
static int open_file(struct staging *staging, const char *target) {
  int point = open_point(staging, target, 0);
  return close_with(point, open(fd_path(point).text, O_WRONLY | O_CLOEXEC));
}

/* -1 with EEXIST where it is there, or is not ours to make. */
static int open_new_file(struct staging *staging, const char *target) {
  const char *name = open_directory_of(staging, target);
  const struct parent *parent = &staging->parent;
  if (!*name || !parent->is_ours) return errno = EEXIST, -1;
  return openat(parent->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static void make_file(struct staging *staging, const struct entry *entry) {
  unsigned mode;
  const char *target = entry->word[0];
  if (parse_mode(entry->word[1], &mode) < 0) fail_with(EINVAL, "stage: mode", target);
  int file = open_new_file(staging, target);
  if (file < 0 && errno == EEXIST) file = open_file(staging, target);
  size_t length = strlen(entry->word[2]);
  if (file < 0 || write(file, entry->word[2], length) != (ssize_t)length || fchmod(file, mode) < 0) fail("stage: write file", target);
  close(file);
}

static void make_scratch(struct staging *staging, const struct entry *entry) {
  uint64_t size, inodes;
  unsigned mode;
  if (parse_number(entry->word[1], UINT64_MAX, &size) < 0 || parse_number(entry->word[2], UINT64_MAX, &inodes) < 0 ||
      parse_mode(entry->word[3], &mode) < 0 || size == 0 || inodes == 0) /* 0 would mean no bound */
    fail_with(EINVAL, "stage: tmpfs", entry->word[0]);
  int mount = new_tmpfs(staging, size, inodes, mode, 1);
  attach(staging, mount, entry->word[0]);
  if (staging->scratch_count == MESSAGE_DESCRIPTORS_MAX) fail_with(E2BIG, "stage: too many tmpfs", entry->word[0]);
  staging->scratch[staging->scratch_count++] = mount;
}

/* Takes `from`. */
static void show_readonly(struct staging *staging, int from, const char *source, const char *target) {
  int tree = cover_clone(from, source);
  cover_attributes(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, source);
  attach(staging, tree, target);
  close(tree);
  close(from);
}

/* The tree that we build lies over the host's /sys. */
static int open_source(const struct staging *staging, const char *source) {
  size_t length = strlen(STAGING_DIRECTORY);
  int is_below = strncmp(source, STAGING_DIRECTORY, length) == 0 && source[length] == '/';
  return is_below ? sys_openat2(staging->below, source + length + 1, O_PATH, NO_LINKS | RESOLVE_BENEATH) : sys_openat2(AT_FDCWD, source, O_PATH, NO_LINKS);
}

static void bind_system(struct staging *staging, const char *source, const char *target) {
  int from = open_source(staging, source);
  if (from < 0) fail("stage: open", source);
  show_readonly(staging, from, source, target);
}

/* The mount point must be there: it is a file that something else shows. */
static void replace_file(struct staging *staging, const char *source, const char *target) {
  show_readonly(staging, open_point(staging, source, 0), source, target);
}

static void make_directory(struct staging *staging, const struct entry *entry) {
  unsigned mode;
  if (parse_mode(entry->word[1], &mode) < 0) fail_with(EINVAL, "stage: mode", entry->word[0]);
  int directory = open_point(staging, entry->word[0], 1);
  if (!is_ours(staging, directory) || chmod(fd_path(directory).text, mode) < 0) fail("stage: directory", entry->word[0]);
  close(directory);
}

/* The kernel and a surrounding container decide whether it may be mounted: -1 where it is refused. */
static int new_cgroup_mount(void) {
  int fs = sys_fsopen("cgroup2");
  if (fs < 0) return -1;
  int is_made = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) == 0;
  int view = is_made ? sys_fsmount(fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) : -1;
  return close_with(fs, view);
}

/*
 * The JVM believes files that say limits only where a cgroup file system is mounted. It is covered by our own files before anything
 * runs, so of groups nothing can be seen, not even that of the run; no wall depends on it, and without one the files are there all the same.
 */
static void mount_cgroup_view(struct staging *staging, const char *target) {
  /* Its root is the group of the run, as what is mounted says to everybody (proc_pid_mountinfo(5)), not that of the host. */
  if (unshare(CLONE_NEWCGROUP) < 0) fail("stage: unshare cgroup namespace", target);
  int view = new_cgroup_mount();
  if (view < 0) return;
  int files = open_point(staging, target, 1);
  int cover = cover_clone(files, target);
  cover_attributes(cover, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, target);
  if (sys_move_mount(view, files) < 0 || sys_move_mount(cover, view) < 0) fail("stage: cgroup view", target);
  close(files), close(view), close(cover);
  forget_parent(staging);
}

static void bind_init(struct staging *staging) {
  bind_system(staging, staging->stage->init, "/" INIT_NAME);
}

static void build(struct staging *staging, const struct entry *entry, int *next_zone) {
  switch (entry->verb) {
    case V_DIRECTORY: make_directory(staging, entry); break;
    case V_SYMLINK: make_symlink(staging, entry->word[0], entry->word[1]); break;
    case V_FILE: make_file(staging, entry); break;
    case V_TMPFS: make_scratch(staging, entry); break;
    case V_NODE: show_node(staging, entry); break;
    case V_BIND: bind_system(staging, entry->word[0], entry->word[1]); break;
    case V_REPLACE: replace_file(staging, entry->word[0], entry->word[1]); break;
    case V_CGROUP_VIEW: mount_cgroup_view(staging, entry->word[0]); break;
    case V_ZONE:
      if (launchfile_is_blank(entry)) {
        close(open_point(staging, entry->word[1], 1));
        break;
      }
      attach(staging, staging->zone[*next_zone].tree, entry->word[1]);
      close(staging->zone[(*next_zone)++].tree);
      cover(staging, entry);
      break;
    default: break;
  }
}

static void build_tree(struct staging *staging) {
  make_root(staging);
  make_dev(staging);
  close(open_point(staging, "/proc", 1));
  bind_init(staging);
  make_empties(staging);
  struct entry entry;
  size_t position = 0;
  int next_zone = 0;
  while (launchfile_next(staging->stage->file, &position, &entry)) build(staging, &entry, &next_zone);
  make_readonly(staging, "/dev");
  make_readonly(staging, "/");
}

/* ---- identity and namespaces ---- */

static int has_capability(int capability) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) < 0) return 0;
  return (data[capability / 32].effective >> (capability % 32)) & 1;
}

static void enter_own_user_namespace(const struct staging *staging) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) fail("stage: unshare user namespace", "");
  struct ids same = {staging->uid, staging->gid};
  engine_map_ids("self", &same, &same);
  if (!engine_is_own(staging->stage->file)) engine_bound_quotas(); /* bwrap's namespace is inside of this one */
}

static void leave_groups(void) {
  if (setgroups(0, NULL) < 0) fail("stage: setgroups", "");
}

/* The id maps in /proc/self belong to root while a process that changed its id is not dumpable; nothing secret is in memory. */
static void become(uid_t uid, gid_t gid) {
  if (setresgid(gid, gid, gid) < 0) fail("stage: setresgid", "");
  if (setresuid(uid, uid, uid) < 0) fail("stage: setresuid", "");
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) fail("stage: set dumpable", "");
}

static void make_everything_private(void) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("stage: make mounts private", "/");
}

static void prepare_as_root(struct staging *staging) {
  if (unshare(CLONE_NEWNS) < 0) fail("stage: unshare mount namespace", "");
  make_everything_private();
  open_layer(staging);
  choose_identity_of_root(staging);
  layer_zones(staging);
  leave_groups();
  if (launchfile_has_slots(staging->stage->file)) staging->root_map = idmap_open(0, 0, staging->uid, staging->gid);
  engine_begin(&staging->engine, staging->stage, &(struct ids){staging->uid, staging->gid});
  build_tree(staging);
}

static void prepare_as_user(struct staging *staging) {
  if (getuid() == 0) {
    /* It would have to run as the owner of a directory that is not known yet. */
    if (launchfile_has_slots(staging->stage->file)) fail_with(EPERM, "stage: blank", "");
    choose_identity_of_weak_root(staging);
    leave_groups();
    become(staging->uid, staging->gid);
  }
  enter_own_user_namespace(staging);
  make_everything_private();
  open_layer(staging);
  open_zones(staging);
  layer_zones(staging);
  engine_begin(&staging->engine, staging->stage, &(struct ids){staging->uid, staging->gid});
  build_tree(staging);
}

/* ---- the end ---- */

/* Files of a tmpfs are memory of the run, which only the file system counts. */
static void notify_launch(const struct staging *staging) {
  struct entry entry;
  struct report report = {.kind = REPORT_STAGED, .pid = staging->engine.init, .at_ns = now_ns()};
  int count = launchfile_find(staging->stage->file, V_WATCH, &entry) ? staging->scratch_count : 0;
  if (report_send(staging->stage->control, &report, staging->scratch, count) < 0) _exit(125);
}

/* Programs of others are executed with the tree and nothing else. */
static _Noreturn void become_engine(const struct staging *staging) {
  if (staging->privileged) become(staging->uid, staging->gid);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("stage: no_new_privs", "");
  /* Changing ids cleared it; the second look notices a parent that died meanwhile. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("stage: parent death signal", "");
  if (getppid() != staging->stage->launch) _exit(125);
  engine_execute(staging->stage);
}

/* ---- a blank sandbox ---- */

static int name_zones(struct staging *staging, const struct places *places) {
  struct entry entry;
  size_t position = 0;
  staging->zones = 0; /* those of the plan are in the tree */
  while (launchfile_next_of(staging->stage->file, V_ZONE, &position, &entry)) {
    if (!launchfile_is_blank(&entry)) continue;
    const struct place *place = place_of(places, &entry);
    if (!place) return -1;
    struct zone *zone = add_zone(staging, &entry);
    zone->source = place->path, zone->device = place->status.st_dev, zone->inode = place->status.st_ino;
  }
  return 0;
}

/* By their paths in our own namespace of mounts: no other one's can be cloned. Launch has looked whether the host's are still the same. */
static void give_zones(struct staging *staging) {
  static struct places places;
  static char bytes[PLACES_BYTES_MAX];
  int trees[MESSAGE_DESCRIPTORS_MAX], count;
  ssize_t got = message_receive(staging->stage->zones, bytes, sizeof bytes, 0, trees, &count);
  if (got <= 0) _exit(125); /* no command will come */
  if (places_read(&places, bytes, (size_t)got) < 0 || name_zones(staging, &places) < 0 || staging->zones > MESSAGE_DESCRIPTORS_MAX)
    fail_with(EINVAL, "stage: directories", "");
  open_zones(staging);
  const struct zone *failed = staging->privileged ? idmap_zones(staging) : NULL;
  if (failed) fail("stage: idmap zone", failed->source);
  for (int i = 0; i < staging->zones; i++) trees[i] = staging->zone[i].tree;
  engine_give(&staging->engine, trees, staging->zones);
  idmap_reap();
}

void stage_and_exec(const struct stage *stage) {
  static _Alignas(PAGE_OF_ITS_OWN) struct staging staging;
  staging.stage = stage;
  staging.uid = getuid();
  staging.gid = getgid();
  staging.parent.fd = staging.root_map = -1;
  fail_through(stage->control);
  if (!launchfile_has_namespaces(stage->file)) host_root_stage(stage);
  umask(0);
  read_zones(&staging);
  staging.privileged = getuid() == 0 && has_capability(CAP_SYS_ADMIN);
  if (staging.privileged) prepare_as_root(&staging);
  else prepare_as_user(&staging);
  if (getppid() != stage->launch) _exit(125);
  idmap_reap(); /* not before: by now they have ended */
  int tree = engine_clone_tree(&staging.engine, staging.root);
  notify_launch(&staging); /* not before: it wakes launch, which would take the processor from us */
  if (!engine_is_own(stage->file)) become_engine(&staging);
  engine_give(&staging.engine, &tree, 1);
  if (launchfile_has_slots(stage->file)) give_zones(&staging);
  _exit(0);
}
