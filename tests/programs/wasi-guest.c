/* A WASI command for the tests: does the one thing its first argument names, and prints what went wrong. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEGABYTE = 1 << 20, PAGE = 4096 };

static int say_errno(void) {
  puts(strerror(errno));
  return 1;
}

static int eat_memory(void) {
  for (int eaten = 0;; eaten++) {
    volatile char *piece = malloc(MEGABYTE);
    if (!piece) return printf("refused after %d\n", eaten), 9;
    for (int at = 0; at < MEGABYTE; at += PAGE) piece[at] = 1;
  }
}

static int copy_out(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) return say_errno();
  for (int c = fgetc(file); c != EOF; c = fgetc(file)) putchar(c);
  return fclose(file);
}

static int write_to(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) return say_errno();
  fputs("written", file);
  return fclose(file);
}

/* By a descriptor that was opened for reading: this needs a separate right. */
static int set_times(const char *path) {
  struct timespec times[2] = {{1, 0}, {1, 0}};
  int fd = open(path, O_RDONLY);
  return fd < 0 || futimens(fd, times) < 0 ? say_errno() : close(fd);
}

static int loop_for_ever(void) {
  puts("early");
  fflush(stdout);
  for (volatile int i = 0;; i++) continue;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "", *first = count > 2 ? words[2] : "", *second = count > 3 ? words[3] : "";
  if (!strcmp(what, "exit")) return atoi(first);
  if (!strcmp(what, "trap")) __builtin_trap();
  if (!strcmp(what, "eat")) return eat_memory();
  if (!strcmp(what, "loop")) return loop_for_ever();
  if (!strcmp(what, "read")) return copy_out(first);
  if (!strcmp(what, "write")) return write_to(first, "w");
  if (!strcmp(what, "append")) return write_to(first, "a");
  if (!strcmp(what, "times")) return set_times(first);
  if (!strcmp(what, "mkdir")) return mkdir(first, 0700) ? say_errno() : 0;
  if (!strcmp(what, "unlink")) return unlink(first) ? say_errno() : 0;
  if (!strcmp(what, "rmdir")) return rmdir(first) ? say_errno() : 0;
  if (!strcmp(what, "rename")) return rename(first, second) ? say_errno() : 0;
  if (!strcmp(what, "link")) return link(first, second) ? say_errno() : 0;
  if (!strcmp(what, "symlink")) return symlink(first, second) ? say_errno() : 0;
  if (!strcmp(what, "env")) return puts(getenv(first) ? getenv(first) : "(none)") < 0;
  for (int i = 1; i < count; i++) printf("[%s]", words[i]);
  return 0;
}
