/*
 * plant: tries to leave a program on the host that runs with another user's rights.
 *
 *   plant modes FILE          every call that sets the set-user-id and set-group-id bits, on FILE and on new files next to it
 *   plant caps FILE           security.capability on FILE, by every call that sets attributes
 *   plant namespace FILE      both, as root of a user namespace of its own
 */
#include "answer.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { BITS = 06755, FCHMODAT2 = 452, SETXATTRAT = 463, OPENAT2 = 437 };

static void plant_modes(const char *file) {
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  answer("chmod", syscall(SYS_chmod, file, BITS));
  answer("fchmod", fchmod(fd, BITS));
  answer("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, file, BITS));
  answer("fchmodat2", syscall(FCHMODAT2, AT_FDCWD, file, BITS, 0));
  answer("chmod-high-bits", syscall(SYS_chmod, file, (uint64_t)BITS | 1ull << 40));
  close(fd);
  char path[4096];
  snprintf(path, sizeof path, "%s.open", file);
  answer("open", open(path, O_CREAT | O_WRONLY | O_CLOEXEC, BITS));
  snprintf(path, sizeof path, "%s.creat", file);
  answer("creat", creat(path, BITS));
  snprintf(path, sizeof path, "%s.mknod", file);
  answer("mknod", mknod(path, S_IFREG | BITS, 0));
  snprintf(path, sizeof path, "%s.openat2", file);
  uint64_t how[3] = {O_CREAT | O_WRONLY, BITS, 0};
  answer("openat2", syscall(OPENAT2, AT_FDCWD, path, how, sizeof how));
  snprintf(path, sizeof path, "%s.tmpfile", file);
  char *slash = strrchr(path, '/');
  if (slash) *slash = 0;
  answer("tmpfile", open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, BITS));
}

static void plant_capabilities(const char *file) {
  struct vfs_cap_data two = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                             .data[0] = {.permitted = 1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_DAC_OVERRIDE}};
  const char *name = "security.capability";
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  answer("setxattr", setxattr(file, name, &two, sizeof two, 0));
  answer("lsetxattr", lsetxattr(file, name, &two, sizeof two, 0));
  answer("fsetxattr", fsetxattr(fd, name, &two, sizeof two, 0));
  struct { uint64_t value; uint32_t size, flags; } words = {(uint64_t)(uintptr_t)&two, sizeof two, 0};
  answer("setxattrat", syscall(SETXATTRAT, AT_FDCWD, file, 0, name, &words, sizeof words));
  close(fd);
}

static void write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) answer(path, -1);
  if (fd >= 0) close(fd);
}

static int become_root_of_a_namespace(void) {
  char uids[64], gids[64];
  snprintf(uids, sizeof uids, "0 %u 1", getuid());
  snprintf(gids, sizeof gids, "0 %u 1", getgid());
  if (answer("unshare", unshare(CLONE_NEWUSER)) < 0) return -1;
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", uids);
  write_text("/proc/self/gid_map", gids);
  return 0;
}

int main(int count, char **words) {
  if (count != 3) return fputs("plant: modes|caps|namespace FILE\n", stderr), 2;
  if (!strcmp(words[1], "namespace") && become_root_of_a_namespace() < 0) return 0;
  if (strcmp(words[1], "caps")) plant_modes(words[2]);
  if (strcmp(words[1], "modes")) plant_capabilities(words[2]);
  return 0;
}
