/*
 * Calls the functions of native/lib/cgroup.h and native/runner/watchdog.h one at a time and prints what they answer:
 * `ok`, `absent`, the name of errno, or a line of JSON. Built with AddressSanitizer by native.system.test.ts.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "runner/watchdog.h"

static int say(int result) {
  if (result < 0) printf("%s\n", strerrorname_np(errno));
  else printf("%s\n", result == CGROUP_ABSENT ? "absent" : "ok");
  return 0;
}

static int count_process(pid_t pid, void *data) {
  (void)pid;
  ++*(int *)data;
  return 0;
}

static int print_usage(int group) {
  struct cgroup_usage usage;
  cgroup_read_usage(group, &usage);
  printf("{\"memoryPeak\":%lld,\"pidsPeak\":%lld,\"cpuUsec\":%lld,\"oom\":%lld,\"oomKill\":%lld,\"pidsMax\":%lld}\n",
         usage.memory_peak, usage.pids_peak, cgroup_read_cpu_usec(group), usage.oom, usage.oom_kill, usage.pids_max);
  return 0;
}

/* watch GROUP|- PID LIMIT [TMPFS...] */
static int print_watch(int argc, char **argv) {
  static struct watchdog watchdog; /* what it has allocated stays */
  int group = strcmp(argv[2], "-") == 0 ? -1 : cgroup_open(argv[2]);
  if (watchdog_init(&watchdog, atoi(argv[3]), group, atoll(argv[4])) != 0) return say(-1);
  for (int i = 5; i < argc; i++) watchdog_add_scratch(&watchdog, open(argv[i], O_PATH | O_CLOEXEC));
  int over = watchdog_sample(&watchdog);
  long long cpu = watchdog_cpu_usec(&watchdog);
  printf("{\"over\":%d,\"used\":%lld,\"peak\":%lld,\"processes\":%zu,\"threads\":%ld,\"cpuUsec\":%lld}\n", over, watchdog.used, watchdog.peak,
         watchdog.process_count, watchdog.threads, cpu);
  if (group >= 0) close(group);
  return 0;
}

static int end_group(int parent, const char *name) {
  int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return cgroup_end(parent, name, group);
}

static int run(int argc, char **argv, int group) {
  const char *verb = argv[1];
  int count = 0;
  if (strcmp(verb, "open") == 0) return say(group < 0 ? -1 : 0);
  if (group < 0) return say(-1);
  if (strcmp(verb, "create") == 0) {
    int made = cgroup_create(group, argv[3]);
    say(made < 0 ? -1 : 0);
    if (made >= 0) close(made);
  } else if (strcmp(verb, "set") == 0 && argc == 5) say(cgroup_set(group, argv[3], argv[4]));
  else if (strcmp(verb, "kill") == 0) say(cgroup_kill(group));
  else if (strcmp(verb, "kill-each") == 0) say(cgroup_kill_each(group));
  else if (strcmp(verb, "wait") == 0) say(cgroup_wait_empty(group, atoi(argv[3])));
  else if (strcmp(verb, "remove") == 0) say(cgroup_remove(group, argv[3]));
  else if (strcmp(verb, "end") == 0) say(end_group(group, argv[3]));
  else if (strcmp(verb, "threads") == 0) printf("%ld\n", cgroup_count_threads(group));
  else if (strcmp(verb, "usage") == 0) print_usage(group);
  else if (strcmp(verb, "count") == 0) printf("%d\n", cgroup_each_process(group, count_process, &count) == 0 ? count : -1);
  else return 2;
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  if (strcmp(argv[1], "watch") == 0) return argc < 5 ? 2 : print_watch(argc, argv);
  int group = cgroup_open(argv[2]);
  int status = run(argc, argv, group);
  if (group >= 0) close(group);
  return status;
}
