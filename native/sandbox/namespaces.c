#include "sandbox/namespaces.h"

#include "lib/files.h"
#include "lib/init-protocol.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "lib/fd-message.h"
#include "sandbox/network.h"
#include "sandbox/proc-mask.h"
#include "lib/run-record.h"

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* `process`: "self", or a pid. */
static void write_map(const char *process, const char *file, const char *text) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/%s", process, file);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  size_t length = strlen(text);
  if (fd < 0 || write(fd, text, length) != (ssize_t)length) fail("engine: write id map", path);
  close(fd);
}

void engine_map_ids(const char *process, const struct ids *inside, const struct ids *outside) {
  char map[64];
  write_map(process, "setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", inside->uid, outside->uid);
  write_map(process, "uid_map", map);
  snprintf(map, sizeof map, "%u %u 1", inside->gid, outside->gid);
  write_map(process, "gid_map", map);
}

static void move_to(int from, int to) {
  if (dup2(from, to) < 0) fail("engine: dup2", "");
}

/* Closed by the execve of init, unless zones come by it. */
#define GATE INIT_ZONES

/* Closed where there is none to be placed. */
static void place_or_close(int from, int to, int flags) {
  if (from >= 0 ? dup3(from, to, flags) < 0 : close(to) < 0 && errno != EBADF) fail("engine: dup3", "");
}

/* `gate`: -1 without, where another program is executed and init makes the network. */
static void move_descriptors(const struct stage *stage, int gate) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) fail("engine: open", "/dev/null");
  move_to(null, 0);
  move_to(null, 1);
  move_to(stage->errors, 2);
  move_to(stage->launch_file, INIT_LAUNCH_FILE);
  move_to(stage->command, INIT_COMMAND);
  move_to(stage->control, INIT_CONTROL);
  for (int i = 0; i < 3; i++) move_to(stage->stdio[i], INIT_STDIN + i);
  fail_through(INIT_CONTROL);
  place_or_close(stage->network, INIT_NETWORK, gate < 0 ? 0 : O_CLOEXEC);
  place_or_close(gate, GATE, stage->zones < 0 ? O_CLOEXEC : 0);
  if (sys_close_range(GATE + 1, ~0u) < 0) fail("engine: close_range", "");
}

/* The id of the run is all of the environment: the janitor finds the processes of a run by it. */
static _Noreturn void execute_at(const struct stage *stage, int program, const char *path, char *const argv[]) {
  char mark[sizeof RUN_MARK + RUN_ID_MAX];
  snprintf(mark, sizeof mark, RUN_MARK "%s", stage->id);
  char *const environment[] = {mark, NULL};
  sys_execveat(program, program == AT_FDCWD ? path : "", argv, environment, program == AT_FDCWD ? 0 : AT_EMPTY_PATH);
  fail("engine: execute", path);
}

static _Noreturn void execute(const struct stage *stage, const char *path, char *const argv[]) { execute_at(stage, AT_FDCWD, path, argv); }

/* ---- none ---- */

void engine_execute_init(const struct stage *stage, int init) {
  char *const argv[] = {"init", NULL};
  move_descriptors(stage, init);
  if (fcntl(INIT_NETWORK, F_SETFD, 0) < 0) fail("engine: descriptor", "");
  execute_at(stage, GATE, stage->init, argv);
}

/* ---- bwrap ---- */

#define ENGINE_WORDS_MAX 128

void engine_execute(const struct stage *stage) {
  struct entry entry;
  const char *argv[ENGINE_WORDS_MAX + 1];
  int words = 0;
  size_t position = 0;
  while (launchfile_next_of(stage->file, V_WORD, &position, &entry)) {
    if (words == ENGINE_WORDS_MAX) fail_with(E2BIG, "engine: words", entry.word[0]);
    argv[words++] = entry.word[0];
  }
  if (words == 0) fail_with(EINVAL, "engine: no words", "bwrap");
  argv[words] = NULL;
  move_descriptors(stage, -1);
  execute(stage, argv[0], (char *const *)argv);
}

/* ---- unshare ---- */

static int has_own_network(const struct launchfile *file) {
  struct entry net;
  if (!launchfile_find(file, V_NET, &net)) fail_with(EINVAL, "engine: network", "");
  return strcmp(net.word[0], "host") != 0;
}

static void bring_loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0 || ioctl(control, SIOCGIFFLAGS, &request) < 0) fail("engine: read loopback", "lo");
  request.ifr_flags |= IFF_UP;
  if (ioctl(control, SIOCSIFFLAGS, &request) < 0) fail("engine: loopback up", "lo");
  close(control);
}

/*
 * A file of /proc/sys. Each namespace has its own files there, under the names of all others: in the host's /proc the kernel compares with
 * each of them, so where there is a fresh one, `proc` is that.
 */
static void write_setting(int proc, const char *path, long long number) {
  char text[32];
  int size = snprintf(text, sizeof text, "%lld\n", number), setting = openat(proc, path, O_WRONLY | O_CLOEXEC);
  if (setting < 0 && (errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT)) return;
  if (setting < 0 || write(setting, text, (size_t)size) != size) fail("engine: setting", path);
  close(setting);
}

static int new_proc(void) {
  int fs = sys_fsopen("proc");
  if (fs < 0 || sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0) fail("engine: mount proc", "/proc");
  int proc = sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (proc < 0) fail("engine: mount proc", "/proc");
  return close_with(fs, proc);
}

/* Over the host's, in a private copy of its mounts, while the stager builds the tree. */
static void attach_proc(int proc, const struct launchfile *file) {
  int point = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (point < 0 || sys_move_mount(proc, point) < 0) fail("engine: mount proc", "/proc");
  close(point);
  proc_cover(file);
}

/* `tree`: a detached clone, which nothing locks in place; what is mounted on it comes with it. */
static void pivot_into(int tree, int proc) {
  int point = open(STAGING_DIRECTORY, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (point < 0 || sys_move_mount(tree, point) < 0) fail("engine: take tree", STAGING_DIRECTORY);
  close(point);
  point = sys_openat2(tree, "proc", O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH);
  if (point < 0 || sys_move_mount(proc, point) < 0) fail("engine: take proc", "/proc");
  if (fchdir(tree) < 0 || sys_pivot_root(".", ".") < 0) fail("engine: pivot_root", STAGING_DIRECTORY);
  if (umount2(".", MNT_DETACH) < 0) fail("engine: leave old root", "/");
  if (chdir("/") < 0) fail("engine: chdir", "/");
  close(tree), close(proc), close(point);
}

static void set_hostname(const struct launchfile *file) {
  struct entry hostname;
  if (!launchfile_find(file, V_HOSTNAME, &hostname)) fail_with(EINVAL, "engine: hostname", "");
  if (sethostname(hostname.word[0], strlen(hostname.word[0])) < 0) fail("engine: sethostname", hostname.word[0]);
}

/* init empties the bounding set, and mounts the zones of a blank sandbox; an id that is not root's keeps a capability over execve as an
 * ambient one only. */
static void keep_capabilities_of_init(int is_blank) {
  uint32_t bits = 1u << CAP_SETPCAP | (is_blank ? 1u << CAP_SYS_ADMIN : 0); /* in the first word */
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2] = {{.effective = bits, .permitted = bits, .inheritable = bits}};
  if (syscall(SYS_capset, &header, sets) < 0) fail("engine: capset", "");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETPCAP, 0, 0) < 0) fail("engine: keep capability", "");
  if (is_blank && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0) fail("engine: keep capability", "");
}

/* Our id is one that our new user namespace knows, and its capabilities stay: it knows no root. */
static void take_identity(const struct ids *inside) {
  if (setresgid(inside->gid, inside->gid, inside->gid) < 0) fail("engine: setresgid", "");
  if (setresuid(inside->uid, inside->uid, inside->uid) < 0) fail("engine: setresuid", "");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("engine: no_new_privs", "");
  /* Changing ids clears it. Should launch be dead by now, init's control socket says so. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) fail("engine: parent death signal", "");
}

/* Until our user namespace has its id map. */
static void wait_for_ids(void) {
  char byte;
  if (read(GATE, &byte, 1) != 1) _exit(125); /* the stager has failed, and has reported why */
}

static int wait_for_tree(void) {
  char byte;
  int fds[MESSAGE_DESCRIPTORS_MAX], count;
  if (message_receive(GATE, &byte, 1, 0, fds, &count) != 1 || count != 1) _exit(125); /* as above */
  return fds[0];
}

/* For init. */
static void keep_names(int fd) {
  if (fd >= 0 && (fd == INIT_NETWORK ? fcntl(fd, F_SETFD, 0) : dup2(fd, INIT_NETWORK)) < 0) fail("engine: names", "");
}

/* The kernel takes longest for the network namespace; the stager builds its tree meanwhile. Returns a /proc that is not attached. */
static int enter_namespaces(const struct launchfile *file) {
  int network = has_own_network(file) ? CLONE_NEWNET : 0;
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | network) < 0) fail("engine: unshare namespaces", "");
  int proc = new_proc();
  set_hostname(file);
  if (network_is_restricted(file)) network_make(file, INIT_NETWORK);
  else if (network) {
    bring_loopback_up();
    /* No other program uses this network, so a server may have port 80. The settings of bwrap's network cannot be written. */
    write_setting(proc, "sys/net/ipv4/ip_unprivileged_port_start", 0);
    keep_names(network_open_names());
  }
  return proc;
}

/* ---- quotas ---- */

/* 0 where it cannot be read. */
static long read_setting(int proc, const char *path) {
  char text[32];
  (void)read_small(proc, path, text, sizeof text);
  return atol(text);
}

/* Parts of what a user may have: 128 instances by default, and from 8192 watches on. A namespace in the sandbox is of `nested` only. */
static void bound_quotas(int proc) {
  static const char *const namespaces[] = {"user", "pid", "uts", "ipc", "net", "mnt", "cgroup", "time"};
  long instances = read_setting(proc, "sys/fs/inotify/max_user_instances"), watches = read_setting(proc, "sys/fs/inotify/max_user_watches");
  if (instances > 0) write_setting(proc, "sys/user/max_inotify_instances", instances / 8 + 1);
  if (watches > 0) write_setting(proc, "sys/user/max_inotify_watches", watches / 4 + 1);
  write_setting(proc, "sys/user/max_fanotify_groups", 16);
  write_setting(proc, "sys/user/max_fanotify_marks", 8192);
  for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
    char path[64];
    snprintf(path, sizeof path, "sys/user/max_%s_namespaces", namespaces[i]);
    write_setting(proc, path, 1024);
  }
}

void engine_bound_quotas(void) {
  int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  bound_quotas(proc);
  close(proc);
}

/*
 * The memory watchdog cannot see System V segments without an attached process, so there are no more than it allows in all. The setting
 * belongs to root of the user namespace that owns ours: that is us where root called (Linux 5.19; before, to the host's
 * root). A plain user's sandbox has no root, and docs/reference/limits.md says so.
 */
static void bound_segments(int proc, const struct launchfile *file) {
  struct entry watch;
  uint64_t bytes;
  if (!launchfile_find(file, V_WATCH, &watch) || parse_number(watch.word[0], INT64_MAX, &bytes) < 0) return;
  write_setting(proc, "sys/kernel/shmall", (long long)(bytes / (uint64_t)sysconf(_SC_PAGESIZE)));
}

static _Noreturn void become_init(const struct stage *stage, const struct engine *engine) {
  char *const argv[] = {"init", NULL};
  move_descriptors(stage, engine->gate[0]);
  if (setsid() < 0) fail("engine: setsid", "");
  int proc = enter_namespaces(stage->file);
  bound_quotas(proc);
  bound_segments(proc, stage->file);
  wait_for_ids();
  take_identity(&engine->inside);
  attach_proc(proc, stage->file);
  pivot_into(wait_for_tree(), proc);
  proc_show(stage->file);
  if (network_is_restricted(stage->file)) network_await_helper(INIT_NETWORK);
  keep_capabilities_of_init(stage->zones >= 0);
  execute(stage, "/" INIT_NAME, argv);
}

/* EPIPE: init's process has failed, and has reported why. */
static void pass_gate(const struct engine *engine, const int *fds, int count) {
  if (message_send(engine->gate[1], "", 1, fds, count) < 0) _exit(125);
}

/* A child of launch: this process ends as soon as the tree stands, and launch sees the end of init at once. */
static void clone_init(struct engine *engine, const struct stage *stage, const struct ids *outside) {
  char process[16];
  struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_PARENT};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, engine->gate) < 0) fail("engine: socketpair", "");
  if ((engine->gate[0] = fcntl(engine->gate[0], F_DUPFD_CLOEXEC, 32)) < 0) fail("engine: descriptor", "");
  pid_t init = sys_clone3(&args);
  if (init < 0) fail("engine: unshare user namespace", "");
  if (init == 0) become_init(stage, engine);
  close(engine->gate[0]);
  engine->init = init;
  snprintf(process, sizeof process, "%d", init);
  engine_map_ids(process, &engine->inside, outside);
  pass_gate(engine, NULL, 0);
}

/* ---- either ---- */

static int is_unshare(const struct engine *engine) { return strcmp(engine->name, "unshare") == 0; }

int engine_is_own(const struct launchfile *file) {
  struct entry named;
  return launchfile_find(file, V_ENGINE, &named) && strcmp(named.word[0], "unshare") == 0;
}

static struct ids ids_inside(const struct launchfile *file) {
  struct entry identity;
  uint64_t uid, gid;
  if (!launchfile_find(file, V_IDENTITY, &identity) || parse_number(identity.word[1], UINT32_MAX - 1, &uid) < 0 ||
      parse_number(identity.word[2], UINT32_MAX - 1, &gid) < 0 || uid == 0)
    fail_with(EINVAL, "engine: identity", "");
  return (struct ids){(uid_t)uid, (gid_t)gid};
}

void engine_begin(struct engine *engine, const struct stage *stage, const struct ids *outside) {
  struct entry named;
  if (!launchfile_find(stage->file, V_ENGINE, &named)) fail_with(EINVAL, "engine: none named", "");
  *engine = (struct engine){.name = named.word[0], .inside = ids_inside(stage->file)};
  if (is_unshare(engine)) clone_init(engine, stage, outside);
  else if (strcmp(engine->name, "bwrap") != 0) fail_with(EINVAL, "engine: unknown", engine->name);
}

int engine_clone_tree(const struct engine *engine, int root) {
  if (!is_unshare(engine)) return -1;
  int tree = sys_open_tree(root, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE);
  if (tree < 0) fail("engine: clone tree", STAGING_DIRECTORY);
  return tree;
}

void engine_give(const struct engine *engine, const int *trees, int count) { pass_gate(engine, trees, count); }
