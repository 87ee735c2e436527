/*
 * hog WAY - uses up one resource and never stops: the guests of the limit suites, static so that any tree runs it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void forever(void) {
  for (;;) pause();
}

static void eat_memory(void) {
  for (;;) {
    char *block = malloc(MIB);
    if (block == NULL) exit(3);
    memset(block, 'x', MIB);
  }
}

static void eat_memory_in_grandchild(void) {
  if (fork() == 0) {
    if (fork() == 0) setsid(), eat_memory();
    forever();
  }
  forever();
}

static void eat_memory_deaf(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
  eat_memory();
}

static void eat_scratch(void) {
  static char block[MIB];
  int file = open("/tmp/filler", O_CREAT | O_WRONLY, 0600);
  memset(block, 'x', sizeof block);
  while (write(file, block, sizeof block) > 0) continue;
  forever();
}

static void eat_pipes(void) {
  static char block[65536];
  struct rlimit most;
  getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  setrlimit(RLIMIT_NOFILE, &most);
  for (int i = 0; i < 1000; i++) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0) exit(3);
    while (write(ends[1], block, sizeof block) > 0) continue;
  }
  forever();
}

/* Attached one at a time and detached again: what stays is in no process's page count. */
static void eat_shared_segments(void) {
  for (;;) {
    int segment = shmget(IPC_PRIVATE, 8 * MIB, IPC_CREAT | 0600);
    void *memory = segment < 0 ? (void *)-1 : shmat(segment, NULL, 0);
    if (memory == (void *)-1) exit(3);
    memset(memory, 'x', 8 * MIB);
    shmdt(memory);
  }
}

/* Stops at the first refusal, like a program that cannot start its workers. */
static void fork_until_refused(void) {
  for (;;) {
    pid_t child = fork();
    if (child < 0) exit(1);
    if (child == 0) forever();
  }
}

/* Waits for a word, then says how many processes there can be at once, itself among them. */
static void count_processes(void) {
  int count = 1;
  getchar();
  for (;; count++) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) forever();
  }
  printf("%d\n", count);
  exit(0);
}

static void fork_bomb(void) {
  for (;;) fork();
}

static void stop_the_tree(void) {
  for (int i = 0; i < 3; i++)
    if (fork() == 0) raise(SIGSTOP), forever();
  raise(SIGSTOP);
  forever();
}

static void spin(void) {
  for (volatile unsigned long count = 0;; count++) continue;
}

/* About 0.4 s of processor time by any clock. */
static void spin_a_while(void) {
  while (clock() < 0.4 * CLOCKS_PER_SEC) continue;
  exit(0);
}

/* The workspace is on a disk: 2 MiB by the shortest way there, past the page cache. */
enum { FILE_BLOCKS = 32, FILE_BLOCK = 65536 };

static int open_on_disk(int flags) {
  int file = open("/out/hog", flags | O_DIRECT, 0600);
  if (file < 0) perror("/out/hog"), exit(3);
  return file;
}

static void *disk_block(void) {
  void *block;
  if (posix_memalign(&block, 4096, FILE_BLOCK) != 0) exit(3);
  return memset(block, 'x', FILE_BLOCK);
}

static void write_to_disk(void) {
  void *block = disk_block();
  int file = open_on_disk(O_CREAT | O_TRUNC | O_WRONLY);
  for (int i = 0; i < FILE_BLOCKS; i++)
    if (write(file, block, FILE_BLOCK) != FILE_BLOCK) perror("write"), exit(3);
  exit(0);
}

static void read_from_disk(void) {
  void *block = disk_block();
  int file = open_on_disk(O_RDONLY);
  for (int i = 0; i < FILE_BLOCKS; i++)
    if (read(file, block, FILE_BLOCK) != FILE_BLOCK) perror("read"), exit(3);
  exit(0);
}

static void die_by_kill(void) { raise(SIGKILL); }

static const struct {
  const char *name;
  void (*eat)(void);
} WAYS[] = {
  {"memory", eat_memory}, {"grandchild", eat_memory_in_grandchild}, {"deaf", eat_memory_deaf}, {"scratch", eat_scratch},
  {"pipes", eat_pipes}, {"segments", eat_shared_segments}, {"workers", fork_until_refused}, {"bomb", fork_bomb},
  {"stopped", stop_the_tree}, {"spin", spin}, {"spin-a-while", spin_a_while}, {"killed", die_by_kill},
  {"write", write_to_disk}, {"read", read_from_disk}, {"forever", forever}, {"count", count_processes},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc == 2 && i < sizeof WAYS / sizeof *WAYS; i++)
    if (strcmp(argv[1], WAYS[i].name) == 0) WAYS[i].eat();
  fprintf(stderr, "hog: unknown way\n");
  return 2;
}
