/*
 * hide-memory WAY MIB [PROCESSES DESCRIPTORS]: holds memory where a watchdog that reads /proc does not look, for 3 seconds or
 * HOLD_SECONDS, and then says how much. The ways:
 *   open         in an anonymous file that everybody sees (the control)
 *   undumpable   the same, by a process whose descriptors belong to root
 *   passing      the same, by one that passes it to a child and ends, again and again, next to PROCESSES with DESCRIPTORS each
 *   copying      private pages, passed on in the same way
 *   leader       private pages of a thread, after the process's first one has ended
 *   thread       an anonymous file that is open in one thread only
 *   segment      System V segments that no process has attached
 *   crowd        nothing: PROCESSES with DESCRIPTORS that do no harm, ten of which start another program all the time
 *   copies       private pages of one process that makes one child after another, as a server does: MIB once, not twice
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t size;
static double seconds = 3;

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void must(int is_so, const char *what) {
  if (is_so) return;
  perror(what);
  _exit(3);
}

static pid_t must_fork(void) {
  pid_t child = fork();
  must(child >= 0, "fork");
  return child;
}

/* `passes`: little by little, from one process to the next, none of which lives long enough to be charged with all of it. */
static void fill_file(int passes) {
  static char block[1 << 20];
  int fd = memfd_create("hidden", 0);
  must(fd >= 0, "memfd_create");
  memset(block, 1, sizeof block);
  for (size_t done = 0; done < size; done += sizeof block) {
    must(write(fd, block, sizeof block) == sizeof block, "write");
    if (passes && must_fork() > 0) _exit(0);
  }
}

static char *fill_pages(void) {
  char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(pages != MAP_FAILED, "mmap");
  memset(pages, 1, size);
  return pages;
}

static void say(void) {
  dprintf(1, "held %zu MiB\n", size >> 20);
  _exit(0);
}

static void hold(void) {
  usleep((useconds_t)(seconds * 1e6));
  say();
}

/* Each child continues where its parent ends. */
static void pass_on(double end) {
  while (now() < end)
    if (must_fork() > 0) _exit(0);
  say();
}

static void make_decoys(int processes, int descriptors) {
  char open_all;
  int ready[2];
  must(pipe(ready) == 0, "pipe");
  for (int i = 0; i < processes; i++) {
    if (must_fork() > 0) continue;
    for (int fd = 0; fd < descriptors; fd++) (void)!open("/dev/null", O_RDONLY);
    must(write(ready[1], "", 1) == 1, "write");
    usleep((useconds_t)((seconds + 2) * 1e6));
    _exit(0);
  }
  for (int i = 0; i < processes; i++) must(read(ready[0], &open_all, 1) == 1, "read");
  close(ready[0]), close(ready[1]);
}

/* The first process stays: with it the run would end. */
static void outlive(void) {
  char word[64];
  int ends[2];
  must(pipe(ends) == 0, "pipe");
  if (must_fork() == 0) {
    dup2(ends[1], 1);
    close(ends[0]), close(ends[1]);
    return;
  }
  close(ends[1]);
  ssize_t got = read(ends[0], word, sizeof word);
  (void)!write(1, word, got > 0 ? (size_t)got : 0);
  _exit(got > 0 ? 0 : 4);
}

/* A process whose first thread has ended looks like one that has. */
static int has_first_thread(void) {
  char state = 0;
  FILE *file = fopen("/proc/self/stat", "r");
  must(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && fclose(file) == 0, "stat");
  return state != 'Z';
}

static void *hold_pages(void *nothing) {
  while (has_first_thread()) usleep(1000);
  fill_pages();
  hold();
  return nothing;
}

static int hold_file(void *nothing) {
  (void)nothing;
  fill_file(0);
  hold();
  return 0;
}

/* Without CLONE_FILES it has a copy of the descriptors. */
static void hold_in_thread(void) {
  char *stack = malloc(1 << 20);
  must(stack && clone(hold_file, stack + (1 << 20), CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD, NULL) > 0, "clone");
  for (;;) pause();
}

/* In pieces: what is attached is seen. */
static void hold_segments(void) {
  for (size_t done = 0; done < size; done += 8 << 20) {
    int segment = shmget(IPC_PRIVATE, 8 << 20, IPC_CREAT | 0600);
    must(segment >= 0, "shmget");
    char *pages = shmat(segment, NULL, 0);
    must(pages != (char *)-1, "shmat");
    memset(pages, 1, 8 << 20);
    must(shmdt(pages) == 0, "shmdt");
  }
  hold();
}

static void start_others(double end) {
  char *const words[] = {"true", NULL};
  while (now() < end) {
    pid_t child = must_fork();
    if (child == 0) execv("/bin/true", words), _exit(1);
    waitpid(child, NULL, 0);
  }
}

static void crowd(int processes, int descriptors) {
  double end = now() + seconds;
  for (int i = 0; i < processes; i++) {
    if (must_fork() > 0) continue;
    for (int fd = 0; fd < descriptors; fd++) (void)!open("/dev/null", O_RDONLY);
    if (i % (processes / 10) == 0) start_others(end);
    else usleep((useconds_t)(seconds * 1e6));
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
  say();
}

static void serve(void) {
  volatile char *pages = fill_pages();
  for (double end = now() + seconds; now() < end;) {
    pid_t child = must_fork();
    /* Longer than a look on a slow machine: one that ends between walk and share counts with all that it had. */
    if (child == 0) pages[0]++, usleep(300000), _exit(0);
    waitpid(child, NULL, 0);
  }
  say();
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *way = argv[1], *asked = getenv("HOLD_SECONDS");
  if (asked) seconds = atof(asked);
  int processes = argc > 4 ? atoi(argv[3]) : 0, descriptors = argc > 4 ? atoi(argv[4]) : 0;
  size = (size_t)atoi(argv[2]) << 20;
  if (strcmp(way, "crowd") == 0) crowd(processes, descriptors);
  if (strcmp(way, "copies") == 0) serve();
  if (strcmp(way, "passing") == 0 || strcmp(way, "copying") == 0) {
    outlive();
    make_decoys(processes, descriptors);
    if (way[0] == 'p') fill_file(1);
    else fill_pages();
    pass_on(now() + seconds);
  }
  if (strcmp(way, "undumpable") == 0) must(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
  if (strcmp(way, "leader") == 0) {
    pthread_t thread;
    outlive();
    must(pthread_create(&thread, NULL, hold_pages, NULL) == 0, "pthread_create");
    pthread_exit(NULL);
  }
  if (strcmp(way, "thread") == 0) hold_in_thread();
  if (strcmp(way, "segment") == 0) hold_segments();
  fill_file(0);
  hold();
}
