/*
 * apply-filter FILE PROGRAM [ARG...]   installs the seccomp filter in FILE (struct sock_filter after another), then becomes PROGRAM.
 * apply-filter --time N FILE           prints the fastest of N installations in nanoseconds, each in a new process.
 * Keeps the capabilities of its caller, so that calls that root is refused are refused by the filter.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

static void install(const struct sock_fprog *filter) {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter)) err(125, "seccomp");
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t time_one(const struct sock_fprog *filter) {
    int channel[2];
    int64_t took = 0;
    if (pipe(channel)) err(125, "pipe");
    pid_t child = fork();
    if (child < 0) err(125, "fork");
    if (child == 0) {
        int64_t before = now_ns();
        install(filter);
        took = now_ns() - before;
        _exit(write(channel[1], &took, sizeof took) != sizeof took);
    }
    if (read(channel[0], &took, sizeof took) != sizeof took) errx(125, "no time came back");
    waitpid(child, NULL, 0);
    close(channel[0]);
    close(channel[1]);
    return took;
}

int main(int argc, char **argv) {
    int timing = argc == 4 && strcmp(argv[1], "--time") == 0;
    if (argc < 3) errx(125, "usage: apply-filter FILE PROGRAM [ARG...] | apply-filter --time N FILE");
    struct sock_fprog filter = read_filter(timing ? argv[3] : argv[1]);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) err(125, "no_new_privs");
    if (!timing) {
        install(&filter);
        execvp(argv[2], argv + 2);
        err(127, "%s", argv[2]);
    }
    int64_t best = INT64_MAX;
    for (int left = atoi(argv[2]); left > 0; left--) {
        int64_t took = time_one(&filter);
        if (took < best) best = took;
    }
    printf("%lld\n", (long long)best);
    return 0;
}
