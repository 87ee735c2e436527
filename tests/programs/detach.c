/*
 * Walks away from protections that are mounts, as a command in a sandbox: detach ZONE NAME NEW [NAME NEW]...
 *
 * A mount point cannot be renamed or removed in the mount namespace that it belongs to. So the program keeps a descriptor of the
 * zone, makes a user and a mount namespace and leaves the zone's mounts behind; through the kept descriptor each NAME
 * becomes NEW. Two ways, each in a new process: it pivots to an empty tmpfs and detaches the old tree, whose mounts then
 * belong to no namespace; or it makes a mount namespace out of one tree and enters that, which kernels before Linux 7.0 cannot.
 * It prints every step with its errno, so that a test sees which one stopped it. The first line is the control: the same
 * rename before anything else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int tell(const char *step, int result) {
  printf("%s: %s\n", step, result < 0 ? strerrorname_np(errno) : "done");
  fflush(stdout);
  return result;
}

static void rename_all(const char *when, int zone, char **names) {
  for (; names[0] && names[1]; names += 2) {
    char step[256];
    snprintf(step, sizeof step, "%s %s", when, names[0]);
    tell(step, renameat(zone, names[0], zone, names[1]));
  }
}

static int write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t written = write(fd, text, strlen(text));
  return close(fd) < 0 || written < 0 ? -1 : 0;
}

/* Not needed for the mounts; a file system may ask for ids that exist. */
static void map_own_ids(unsigned uid, unsigned gid) {
  char line[64];
  snprintf(line, sizeof line, "%u %u 1", uid, uid);
  tell("uid map", write_file("/proc/self/uid_map", line));
  write_file("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "%u %u 1", gid, gid);
  tell("gid map", write_file("/proc/self/gid_map", line));
}

static int enter_user_namespace(void) {
  unsigned uid = geteuid(), gid = getegid();
  if (tell("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS)) < 0) return -1;
  map_own_ids(uid, gid);
  return 0;
}

static int pivot_away(void) {
  if (enter_user_namespace() < 0) return -1;
  if (tell("tmpfs", mount("own", "/tmp", "tmpfs", 0, 0)) < 0) return -1;
  if (tell("old", mkdir("/tmp/old", 0700)) < 0) return -1;
  if (tell("pivot_root", (int)syscall(SYS_pivot_root, "/tmp", "/tmp/old")) < 0) return -1;
  if (tell("chdir", chdir("/")) < 0) return -1;
  return tell("detach", umount2("/old", MNT_DETACH));
}

#define NAMESPACE_OF_TREE 2 /* OPEN_TREE_NAMESPACE of linux/mount.h; older kernels answer EINVAL */

static int enter_tree(void) {
  if (enter_user_namespace() < 0) return -1;
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/tmp", NAMESPACE_OF_TREE | O_CLOEXEC);
  if (tell("open_tree", tree) < 0) return -1;
  return tell("setns", setns(tree, CLONE_NEWNS));
}

static int try_way(int (*leave)(void), int zone, char **names) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    if (leave() == 0) rename_all("after", zone, names);
    _exit(0);
  }
  return waitpid(child, 0, 0) < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
  if (argc < 4) return 9;
  int zone = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (tell("open", zone) < 0) return 9;
  rename_all("before", zone, argv + 2);
  if (try_way(pivot_away, zone, argv + 2) < 0) return 9;
  return try_way(enter_tree, zone, argv + 2) < 0 ? 9 : 0;
}
