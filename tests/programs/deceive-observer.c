/*
 * Tricks of a hostile command against the observer of its system calls. Prints `done` when it has come to its end.
 *
 *   deceive-observer pointers        paths at addresses that cannot be read, at the end of a page, without an end
 *   deceive-observer threads N       so many threads change the path while it is read
 *   deceive-observer execs N         threads that execute another program while others open files
 *   deceive-observer descriptors N   closes and opens the descriptors that its paths are relative to
 *   deceive-observer deaths N        so many processes that are killed while they open
 *   deceive-observer processes N     so many processes that write at once
 *   deceive-observer names N         so many different names that cannot be written
 *   deceive-observer signals N       opens so often between signals, whose handler lets the kernel continue; says so where it did not
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int is_over;
static char shared[64];

static void try_path(const void *path) {
  (void)!syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  (void)!syscall(SYS_openat, 12345, path, O_WRONLY);
  (void)!syscall(SYS_mkdirat, -7, path, 0755);
  (void)!syscall(SYS_execve, path, NULL, NULL);
  (void)!syscall(SYS_openat2, AT_FDCWD, path, path, 24);
  (void)!syscall(SYS_connect, 3, path, 16);
  (void)!syscall(SYS_connect, 3, path, -1);
  (void)!syscall(SYS_sendto, 3, "", 0, 0, path, 4096);
}

static void pointers(void) {
  char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static char endless[1 << 16];
  if (pages == MAP_FAILED || munmap(pages + 4096, 4096) < 0) exit(2);
  memset(pages, 'a', 4096);
  memset(endless, '/', sizeof endless);
  memcpy(pages + 4090, "/x", 3);
  const void *const bad[] = {NULL, (void *)1, (void *)-1, (void *)~0xfffl, (void *)0x8000000000000000ul, pages + 4000, pages + 4095,
                             pages + 4090, pages + 4096, endless, endless + sizeof endless - 1, "", "/", "..", "/../../..", "//////x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) try_path(bad[i]);
}

static void *change_path(void *unused) {
  while (!is_over) strcpy(shared, "/hidden/one"), strcpy(shared, "out"), memset(shared, 'x', sizeof shared - 1);
  return unused;
}

static void *open_path(void *unused) {
  for (int i = 0; i < 2000; i++) close(open(shared, O_WRONLY | O_CREAT, 0644));
  return unused;
}

static void threads(int count) {
  pthread_t changing[64], opening[64];
  for (int i = 0; i < count; i++) pthread_create(&changing[i], NULL, change_path, NULL), pthread_create(&opening[i], NULL, open_path, NULL);
  for (int i = 0; i < count; i++) pthread_join(opening[i], NULL);
  is_over = 1;
  for (int i = 0; i < count; i++) pthread_join(changing[i], NULL);
}

static void *execute(void *unused) {
  usleep(500);
  execl("/bin/true", "true", NULL);
  return unused;
}

static void execs(int count) {
  for (int i = 0; i < count; i++) {
    if (fork() == 0) {
      pthread_t one, other;
      strcpy(shared, "out");
      pthread_create(&one, NULL, open_path, NULL);
      pthread_create(&other, NULL, execute, NULL);
      open_path(NULL);
      _exit(0);
    }
  }
  while (wait(NULL) > 0) continue;
}

static void *shuffle(void *unused) {
  while (!is_over) {
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    (void)dup2(fd, 20), close(20), close(fd);
  }
  return unused;
}

static void descriptors(int count) {
  pthread_t thread;
  pthread_create(&thread, NULL, shuffle, NULL);
  for (int i = 0; i < count; i++) (void)mkdirat(20, "below/nowhere-else", 0755), close(openat(20, "nowhere-else", O_RDONLY));
  is_over = 1;
  pthread_join(thread, NULL);
}

static void deaths(int count) {
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child == 0)
      for (;;) close(open("out", O_WRONLY | O_CREAT, 0644));
    usleep(i % 7 * 100);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
}

static void processes(int count) {
  for (int i = 0; i < count; i++)
    if (fork() == 0) {
      for (int n = 0; n < 20; n++) (void)mkdir("same", 0755);
      _exit(0);
    }
  while (wait(NULL) > 0) continue;
}

static void names(int count) {
  char name[32];
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "name%d", i);
    (void)mkdir(name, 0755);
    snprintf(name, sizeof name, "/nowhere/name%d", i);
    close(open(name, O_RDONLY));
  }
}

static void nothing(int signal) { (void)signal; }

static void signals(int count) {
  struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
  struct itimerval every = {{0, 200}, {0, 200}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  for (int i = 0; i < count; i++) {
    int fd = open("/etc/passwd", O_RDONLY);
    if (fd < 0 && errno == EINTR) puts("interrupted"), exit(1);
    close(fd);
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int count = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(what, "pointers") == 0) pointers();
  else if (strcmp(what, "threads") == 0) threads(count);
  else if (strcmp(what, "execs") == 0) execs(count);
  else if (strcmp(what, "descriptors") == 0) descriptors(count);
  else if (strcmp(what, "deaths") == 0) deaths(count);
  else if (strcmp(what, "processes") == 0) processes(count);
  else if (strcmp(what, "names") == 0) names(count);
  else if (strcmp(what, "signals") == 0) signals(count);
  else return 2;
  puts("done");
  return 1; /* a run that fails tells what was refused */
}
