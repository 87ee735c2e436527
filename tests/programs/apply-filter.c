/*
 * apply-filter FILE PROGRAM [ARG...]   installs the seccomp filter in FILE (struct sock_filter after another), then becomes PROGRAM.
 * Keeps the capabilities of its caller, so that calls that root is refused are refused by the filter.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter instructions[BPF_MAXINSNS + 1];

static struct sock_fprog read_filter(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) err(125, "%s", path);
    ssize_t bytes = read(file, instructions, sizeof instructions);
    if (bytes <= 0 || bytes % (ssize_t)sizeof *instructions) errx(125, "%s: %zd bytes are no filter", path, bytes);
    close(file);
    return (struct sock_fprog){.len = (unsigned short)(bytes / (ssize_t)sizeof *instructions), .filter = instructions};
}

int main(int argc, char **argv) {
    if (argc < 3) errx(125, "usage: apply-filter FILE PROGRAM [ARG...]");
    struct sock_fprog filter = read_filter(argv[1]);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) err(125, "no_new_privs");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)) err(125, "seccomp");
    execvp(argv[2], argv + 2);
    err(127, "%s", argv[2]);
}
