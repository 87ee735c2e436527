#include "sandbox/host-root.h"

#include "lib/covers.h"
#include "lib/files.h"
#include "lib/init-protocol.h"
#include "lib/landlock.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "sandbox/confine.h"
#include "sandbox/idmap.h"
#include "sandbox/namespaces.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

#define READ_FILE (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE)
#define READ (READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_TRUNCATE)
/* No sockets, FIFOs or devices: they would be for processes of the host. */
#define WRITE                                                                                                                   \
  (WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                  \
   LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | RIGHT_REFER)

/* ---- what can be reached ---- */

/* `rights` as for a directory. */
static void allow(int rules, int fd, uint64_t rights, const char *path) {
  struct stat status;
  if (fstat(fd, &status) < 0) fail("stage: stat", path);
  if (S_ISLNK(status.st_mode)) return; /* where it leads has a rule, or none */
  if (!S_ISDIR(status.st_mode)) rights &= READ_FILE | WRITE_FILE | RIGHT_IOCTL_DEVICE;
  struct landlock_path_beneath_attr beneath = {.allowed_access = rights, .parent_fd = fd};
  if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0) fail("stage: landlock rule", path);
}

static void allow_path(int rules, const char *path, uint64_t rights) {
  int fd = sys_openat2(AT_FDCWD, path, O_PATH, NO_LINKS);
  if (fd < 0) fail("stage: open", path);
  allow(rules, fd, rights, path);
  close(fd);
}

/* Not every host has these. The path may be a link: these are files of the system, and known by their names. */
static void allow_if_there(int rules, const char *path, uint64_t rights) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == EACCES)) return;
  if (fd < 0) fail("stage: open", path);
  allow(rules, fd, rights, path);
  close(fd);
}

/* Nothing that tells of another process, and no setting. */
static void allow_kernel_files(int rules) {
  static const char *const files[] = {
      "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems",
      "/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/ngroups_max",
      "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/random/uuid", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count",
      "/proc/sys/fs/file-max", "/proc/sys/fs/pipe-max-size", "/proc/sys/net/core/somaxconn", "/sys/devices/system/cpu/online",
      "/sys/devices/system/cpu/possible", "/sys/devices/system/cpu/present", "/sys/kernel/mm/transparent_hugepage/enabled"};
  static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) allow_if_there(rules, files[i], LANDLOCK_ACCESS_FS_READ_FILE);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    allow_if_there(rules, devices[i], LANDLOCK_ACCESS_FS_READ_FILE | WRITE_FILE | RIGHT_IOCTL_DEVICE);
}

/* ---- writable zones ---- */

struct writing {
  int rules;
  const struct guard_zone *zone;
  size_t met; /* covers that were come across */
};

/* Whether some cover lies below a path; the root of the zone is "". */
static int holds_covers(const struct guard_zone *zone, const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < zone->covers; i++) {
    const char *cover = zone->cover[i].path;
    if (strncmp(cover, path, length) == 0 && (length == 0 || cover[length] == '/')) return 1;
  }
  return 0;
}

/* Counts the covers of this very path, each of what launch saw and nothing that took its place since. */
static int is_writable(struct writing *writing, int fd, const char *path, int above) {
  struct stat status;
  int writable = above, closed = 0;
  for (size_t i = 0; i < writing->zone->covers; i++) {
    const struct guard_cover *cover = &writing->zone->cover[i];
    if (strcmp(cover->path, path) != 0) continue;
    if (fstat(fd, &status) < 0) fail("stage: protect", path);
    if (status.st_dev != cover->identity.dev || status.st_ino != cover->identity.ino) fail_with(ESTALE, "stage: protect", path);
    writing->met++;
    writable = 1;
    closed |= !cover->writable;
  }
  return writable && !closed;
}

static void allow_entries(struct writing *writing, int directory, const char *path, int writable);

/* Takes `fd`. */
static void allow_entry(struct writing *writing, int fd, const char *path, int above) {
  int writable = is_writable(writing, fd, path, above);
  if (holds_covers(writing->zone, path)) allow_entries(writing, fd, path, writable);
  else if (writable) allow(writing->rules, fd, READ | WRITE, path);
  close(fd);
}

static void allow_entries(struct writing *writing, int directory, const char *path, int writable) {
  DIR *entries = entries_open(directory);
  if (!entries) fail("stage: read directory", path);
  for (const char *name; (name = entries_next(entries));) {
    char below[PATH_MAX];
    if (snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", name) >= (int)sizeof below) fail_with(ENAMETOOLONG, "stage: protect", path);
    int fd = sys_openat2(directory, name, O_PATH | O_NOFOLLOW, NO_LINKS | RESOLVE_BENEATH);
    if (fd < 0 && errno == ENOENT) continue; /* removed meanwhile; what is covered is missed below */
    if (fd < 0) fail("stage: protect", below);
    allow_entry(writing, fd, below, writable);
  }
  if (entries_close(entries, 0) < 0) fail("stage: read directory", path);
}

static void allow_writing(int rules, int zone, const struct guard_zone *guarded, const char *path) {
  if (!guarded || guarded->covers == 0) return allow(rules, zone, READ | WRITE, path);
  struct writing writing = {.rules = rules, .zone = guarded};
  allow_entries(&writing, zone, "", 1);
  if (writing.met != guarded->covers) fail_with(ESTALE, "stage: protect", path);
}

static const struct guard *covers_of_launch(const struct stage *stage) {
  static struct guard guard;
  static int is_here;
  if (!is_here && covers_receive(stage->control, &guard) < 0) fail("stage: receive covers", "");
  is_here = 1;
  return &guard;
}

static void allow_zone(int rules, const struct stage *stage, const struct entry *entry) {
  uint64_t device, inode;
  const char *source = entry->word[0], *mode = entry->word[2];
  int is_rw = strcmp(mode, "rw") == 0, zone = sys_openat2(AT_FDCWD, source, O_PATH, NO_LINKS);
  struct stat status;
  if (zone < 0 || fstat(zone, &status) < 0) fail("stage: open zone", source);
  if (parse_number(entry->word[3], UINT64_MAX, &device) < 0 || parse_number(entry->word[4], UINT64_MAX, &inode) < 0)
    fail_with(EINVAL, "stage: zone identity", source);
  if (status.st_dev != device || status.st_ino != inode) fail_with(ESTALE, "stage: zone was replaced", source);
  if (!is_rw && strcmp(mode, "ro") != 0) fail_with(EINVAL, "stage: zone without namespaces", source);
  if (strcmp(source, entry->word[1]) != 0 || strcmp(entry->word[5], "closed") != 0) fail_with(EINVAL, "stage: zone without namespaces", source);
  allow(rules, zone, READ, source);
  if (is_rw) allow_writing(rules, zone, guard_zone_at(covers_of_launch(stage), entry->word[1]), source);
  close(zone);
}

/* ---- devices ---- */

int host_root_open_node(const struct entry *entry) {
  uint64_t device, inode, number;
  struct stat status;
  const char *source = entry->word[0];
  if (parse_number(entry->word[2], UINT64_MAX, &device) < 0 || parse_number(entry->word[3], UINT64_MAX, &inode) < 0 || parse_number(entry->word[4], UINT64_MAX, &number) < 0)
    fail_with(EINVAL, "stage: device identity", source);
  int node = sys_openat2(AT_FDCWD, source, O_PATH, NO_LINKS);
  if (node < 0 || fstat(node, &status) < 0) fail("stage: open device", source);
  if (!S_ISCHR(status.st_mode) || status.st_dev != device || status.st_ino != inode || status.st_rdev != number) fail_with(ESTALE, "stage: device was replaced", source);
  return node;
}

static void allow_node(int rules, const struct entry *entry) {
  int node = host_root_open_node(entry);
  allow(rules, node, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_IOCTL_DEVICE, entry->word[0]);
  close(node);
}

/* ---- the ruleset ---- */

static int require_version(void) {
  long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < LANDLOCK_SCOPES) fail_with(ENOSYS, "stage: landlock version", "");
  return (int)abi;
}

static int make_rules(const struct stage *stage) {
  struct landlock_rules wanted = {.handled_fs = RIGHTS_OF_SCOPES, .scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS};
  struct entry entry;
  if (require_version() >= LANDLOCK_CLOSES_SOCKETS) wanted.handled_fs |= RIGHT_RESOLVE_UNIX;
  if (!launchfile_find(stage->file, V_NET, &entry)) fail_with(EINVAL, "stage: network", "");
  if (strcmp(entry.word[0], "none") == 0) wanted.handled_net = NET_BIND_TCP | NET_CONNECT_TCP;
  else if (strcmp(entry.word[0], "host") != 0) fail_with(EINVAL, "stage: net without namespaces", entry.word[0]);
  int rules = (int)syscall(SYS_landlock_create_ruleset, &wanted, sizeof wanted, 0);
  if (rules < 0) fail("stage: landlock", "");
  return rules;
}

static void fill_rules(int rules, const struct stage *stage) {
  struct entry entry;
  size_t position = 0;
  allow_kernel_files(rules);
  while (launchfile_next(stage->file, &position, &entry)) {
    if (entry.verb == V_ZONE) allow_zone(rules, stage, &entry);
    if (entry.verb == V_NODE) allow_node(rules, &entry);
    if (entry.verb == V_BIND) allow_path(rules, entry.word[0], READ);
    if (entry.verb == V_FILE) allow_if_there(rules, entry.word[0], LANDLOCK_ACCESS_FS_READ_FILE); /* the host's own */
    if (entry.verb == V_TMPFS || entry.verb == V_COW || entry.verb == V_REPLACE || entry.verb == V_HIDE) fail_with(EINVAL, "stage: mount without namespaces", entry.word[0]);
  }
}

/* ---- identity ---- */

/* Root's command runs as an id that the host does not know, or as the owner of its writable zone. Its files are never root's. */
static void leave_root(const struct stage *stage) {
  uid_t uid = FIRST_FRESH_ID + (uid_t)stage->launch;
  gid_t gid = (gid_t)uid;
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(stage->file, &position, &entry)) {
    struct stat status;
    if (entry.verb != V_ZONE || strcmp(entry.word[2], "rw") != 0) continue;
    if (lstat(entry.word[0], &status) < 0) fail("stage: stat zone", entry.word[0]);
    if (status.st_uid == 0 || status.st_gid == 0) fail_with(EPERM, "stage: zone of root", entry.word[0]);
    uid = status.st_uid;
    gid = status.st_gid;
  }
  drop_bounding_set();
  if (setgroups(0, NULL) < 0) fail("stage: setgroups", "");
  if (setresgid(gid, gid, gid) < 0) fail("stage: setresgid", "");
  if (setresuid(uid, uid, uid) < 0) fail("stage: setresuid", "");
}

static void require_unprivileged(void) {
  uid_t uid, effective, saved;
  if (getresuid(&uid, &effective, &saved) < 0 || uid == 0 || effective != uid || saved != uid) fail_with(EPERM, "stage: identity", "");
}

static int above_of_init(int fd, const char *what) {
  int moved = fd_above(fd, 32);
  if (moved < 0) fail("stage: descriptor", what);
  return moved;
}

_Noreturn void host_root_stage(const struct stage *stage) {
  struct stage with = *stage;
  fail_through(stage->control);
  with.network = above_of_init(make_rules(stage), "ruleset");
  fill_rules(with.network, stage); /* as ourselves: the new id may not be allowed to look */
  int init = open(stage->init, O_PATH | O_CLOEXEC);
  if (init < 0) fail("stage: open", stage->init);
  init = above_of_init(init, "init");
  if (getuid() == 0) leave_root(stage);
  require_unprivileged();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("stage: no_new_privs", "");
  if (setsid() < 0) fail("stage: setsid", "");
  if (getppid() != stage->launch) _exit(125);
  struct report report = {.kind = REPORT_STAGED, .pid = getpid(), .at_ns = now_ns()};
  if (report_send(stage->control, &report, NULL, 0) < 0) _exit(125);
  engine_execute_init(&with, init);
}
