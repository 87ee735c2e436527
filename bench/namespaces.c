/*
 * namespaces: a command in fresh namespaces of every kind, and nothing else: no tree, no walls, no limits, no client. What this costs, no
 * sandbox that makes its namespaces anew for each run can go below.
 *
 *   namespaces COMMAND [ARG...]
 *
 * Exit status: that of the command, 125 where the namespaces could not be made or the command was not executed.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET)
#define FAILED 125

static int failed(const char *step) {
  perror(step);
  return FAILED;
}

int main(int argc, char **argv) {
  int status;
  if (argc < 2) return fprintf(stderr, "usage: namespaces COMMAND [ARG...]\n"), FAILED;
  if (unshare(ALL) < 0) return failed("namespaces: unshare");
  pid_t child = fork();
  if (child < 0) return failed("namespaces: fork");
  if (child == 0) {
    execvp(argv[1], argv + 1);
    _exit(failed("namespaces: exec"));
  }
  if (waitpid(child, &status, 0) != child) return failed("namespaces: wait");
  return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}
