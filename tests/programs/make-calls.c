/*
 * make-calls NUMBER[,ARG...]...   makes each system call in a new child and session, and prints one line for each:
 *   ok         it did not fail
 *   ERRNO      the number of its error
 *   signal N   it was ended by a signal
 * ARG is a number as strtoull reads it, or text behind a colon (`:/tmp/x`), which is passed as a pointer. Missing arguments are 0.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_call(char *words) {
    unsigned long argument[7] = {0};
    for (int count = 0; count < 7; count++) {
        char *word = strsep(&words, ",");
        if (!word) break;
        argument[count] = *word == ':' ? (unsigned long)(word + 1) : strtoull(word, NULL, 0);
    }
    errno = 0;
    long result = syscall((long)argument[0], argument[1], argument[2], argument[3], argument[4], argument[5], argument[6]);
    return result == -1 ? errno : 0;
}

/* A fork-like call returns twice; the second copy must not write a second line. */
static void answer_once(int channel, int error, pid_t writer) {
    if (getpid() == writer && write(channel, &error, sizeof error) != sizeof error) _exit(1);
    _exit(0);
}

static void report(char *words) {
    int channel[2], error, status;
    if (pipe(channel)) err(125, "pipe");
    pid_t child = fork();
    if (child < 0) err(125, "fork");
    if (child == 0) {
        setsid();
        pid_t writer = getpid();
        answer_once(channel[1], make_call(words), writer);
    }
    close(channel[1]);
    ssize_t bytes = read(channel[0], &error, sizeof error);
    close(channel[0]);
    waitpid(child, &status, 0);
    if (bytes != sizeof error) printf("signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    else if (error) printf("%d\n", error);
    else puts("ok");
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++) report(argv[at]);
    return 0;
}
