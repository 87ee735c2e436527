/*
 * detach DIRECTORY FROM TO: renames FROM to TO in DIRECTORY although something is mounted on or below FROM. The kernel refuses
 * to rename what is a mount point in the caller's mount namespace; so the namespace lets go of the tree, and a descriptor keeps it.
 */
#include "answer.h"
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static void write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) answer(path, -1);
  if (fd >= 0) close(fd);
}

static int own_namespaces(void) {
  char uids[64], gids[64];
  snprintf(uids, sizeof uids, "0 %u 1", getuid());
  snprintf(gids, sizeof gids, "0 %u 1", getgid());
  if (answer("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS)) < 0) return -1;
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", uids);
  write_text("/proc/self/gid_map", gids);
  return 0;
}

/* A new root without the old tree in it. */
static void let_go(void) {
  answer("private", mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
  if (answer("tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL)) < 0) return;
  if (chdir("/tmp") < 0) return;
  answer("pivot_root", syscall(SYS_pivot_root, ".", "."));
  answer("umount", umount2(".", MNT_DETACH));
}

int main(int count, char **words) {
  if (count != 4) return fputs("detach: DIRECTORY FROM TO\n", stderr), 2;
  int directory = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return answer(words[1], -1), 1;
  answer("rename-before", renameat(directory, words[2], directory, words[3]));
  if (own_namespaces() < 0) return 0;
  let_go();
  answer("rename", renameat(directory, words[2], directory, words[3]));
  return 0;
}
