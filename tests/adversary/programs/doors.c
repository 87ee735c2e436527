/*
 * doors: calls that lead out of a sandbox or into rarely used kernel code. One line for each. A call that was let in and only
 * stumbled over what it was given (EFAULT, EINVAL, EBADF...) is told from one that was refused.
 */
#include "answer.h"
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void try_socket(const char *what, int family, int type, int protocol) {
  int fd = socket(family, type, protocol);
  answer(what, fd);
  if (fd >= 0) close(fd);
}

static void try_sockets(void) {
  try_socket("packet", AF_PACKET, SOCK_RAW, 0);
  try_socket("vsock", AF_VSOCK, SOCK_STREAM, 0);
  try_socket("alg", AF_ALG, SOCK_SEQPACKET, 0);
  try_socket("rxrpc", AF_RXRPC, SOCK_DGRAM, AF_INET);
  try_socket("key", AF_KEY, SOCK_RAW, 2);
  try_socket("xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM);
  try_socket("netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  try_socket("audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static void try_kernel(void) {
  answer("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
  answer("bpf", syscall(SYS_bpf, 0, NULL, 0));
  answer("userfaultfd", syscall(SYS_userfaultfd, 1));
  answer("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  answer("keyctl", syscall(SYS_keyctl, 0, -3, 1));
  answer("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
  answer("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
  answer("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
  answer("init_module", syscall(SYS_init_module, NULL, 0, ""));
  answer("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  answer("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
  answer("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
  answer("quotactl", syscall(SYS_quotactl, 0, NULL, 0, NULL));
  answer("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
  answer("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
#ifdef __x86_64__
  answer("x32", syscall(0x40000000 | SYS_getpid));
#endif
  answer("unknown", syscall(999));
}

int main(void) {
  try_sockets();
  try_kernel();
  return 0;
}
