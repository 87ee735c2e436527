/*
 * runs: the records of live runs, for `llm-do ps`, `kill` and `prune`.
 *
 *   runs list DIRECTORY        one JSON line a live run; root is shown those of other users, too, where such records usually are
 *   runs kill DIRECTORY ID     asks its launcher to end it; status 1 when it does not exist
 *   runs prune DIRECTORY       cleans up after killed launchers, prints how many
 *
 * And what must be made on the disk before a run, without trust in any path:
 *
 *   runs make PATH             the directory of a zone with those above it (lib/make-directory.h), prints its device and inode
 *   runs remove DIRECTORY NAME what commands may have left in a private directory, however deep, and may still be changing
 *
 * And for Node, which has no datagram sockets of UNIX:
 *
 *   runs unbound PATH...       prints a digit for each path: 1 when it is the file of a socket that no process has, 0 for all else
 *
 * And for Node, which has no flock(2):
 *
 *   runs lock MS               locks descriptor 3 (lib/file-lock.h), which stays with the open file; status 1 when another held it for MS milliseconds
 *   runs lock MS BYTES         the same, keeps room for BYTES at the end of descriptor 4, and unlocks: could a line be appended?
 */
#include "lib/fd-message.h"
#include "lib/file-lock.h"
#include "lib/files.h"
#include "lib/make-directory.h"
#include "lib/remove-tree.h"
#include "lib/syscalls.h"
#include "lib/run-record.h"
#include "lib/json-text.h"
#include "lib/programs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A prune without other work waits for killed processes to end; large ones need a while to give their memory back. */
#define PATIENCE_MS 2000

static const char *value_or(const struct record_content *content, const char *key, const char *otherwise) {
  const char *value = record_value(content, key, 0);
  return value ? value : otherwise;
}

/* The record of another user holds what that user likes; whose it is, its file says. */
static int print_run(const struct record_content *content, int fd, void *data) {
  (void)data;
  struct stat status;
  uint64_t number = 0;
  if (record_value(content, "warm", 0)) return 0; /* it waits for its run */
  if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) return 0;
  printf("{\"id\":");
  put_json(stdout, value_or(content, "id", ""));
  parse_number(value_or(content, "pid", "0"), UINT64_MAX, &number);
  printf(",\"pid\":%llu", (unsigned long long)number);
  parse_number(value_or(content, "started", "0"), UINT64_MAX, &number);
  printf(",\"started\":%llu,\"uid\":%u,\"directory\":", (unsigned long long)number, status.st_uid);
  put_json(stdout, value_or(content, "directory", ""));
  printf(",\"profile\":");
  put_json(stdout, value_or(content, "profile", ""));
  printf(",\"command\":[");
  const char *word;
  for (int i = 0; (word = record_value(content, "word", i)); i++) {
    if (i) putchar(',');
    put_json(stdout, word);
  }
  puts("]}");
  return 0;
}

static void list_below(int above, const char *below) {
  struct stat status;
  int fd = records_look(above, below);
  if (fd < 0) return;
  if (fstat(fd, &status) == 0 && status.st_uid != geteuid()) records_each(fd, print_run, NULL);
  close(fd);
}

/* In each directory of `place` whose name begins so, a number behind it. Only what src/host/own-directory.ts looks for first: of another user's environment
 * nothing is known. */
static void list_others(const char *place, const char *prefix, const char *below) {
  DIR *entries = opendir(place);
  struct dirent *entry;
  while (entries && (entry = readdir(entries))) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || !isdigit((unsigned char)entry->d_name[strlen(prefix)])) continue;
    int holder = openat(dirfd(entries), entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (holder < 0) continue;
    list_below(holder, below);
    close(holder);
  }
  if (entries) closedir(entries);
}

static int list(int directory) {
  int failed = records_each(directory, print_run, NULL) < 0;
  if (geteuid() == 0) {
    list_others("/run/user", "", "llm-do/runs");
    list_others("/tmp", "llm-do-", "runs");
  }
  return failed || fflush(stdout) != 0 ? 125 : 0;
}

/* The descriptor pins the process, and a second look at the record proves that it is still the launcher that wrote it. */
static int end_run(const struct record_content *content, int fd, void *id) {
  uint64_t pid;
  if (strcmp(value_or(content, "id", ""), id) != 0) return 0;
  if (parse_number(value_or(content, "pid", ""), 1 << 30, &pid) < 0) return 0;
  int pidfd = sys_pidfd_open((pid_t)pid);
  if (pidfd < 0 || !record_is_live(fd)) return 0;
  return sys_pidfd_send_signal(pidfd, SIGTERM) == 0;
}

static int make(const char *path) {
  int failed;
  struct stat status;
  int fd = make_directory_path(path, &failed);
  if (fd < 0 || fstat(fd, &status) < 0) {
    const char *why = errno == ELOOP ? "a symbolic link is in the way" : strerror(errno);
    fprintf(stderr, "%.*s: %s\n", failed, path, why);
    return 125;
  }
  close(fd);
  printf("%llu %llu\n", (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
  return fflush(stdout) == 0 ? 0 : 125;
}

static int remove_kept(int directory, const char *name) {
  if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) errno = EINVAL;
  else if (remove_tree(directory, name) == 0) return 0;
  fprintf(stderr, "%s: %s\n", name, strerror(errno));
  return 125;
}

#define LOCK_FD 3
#define FILE_FD 4

static int failed_with(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 125;
}

static int take_lock(const char *patience, const char *bytes) {
  uint64_t milliseconds, room = 0;
  if (parse_number(patience, UINT32_MAX, &milliseconds) < 0 || (bytes && parse_number(bytes, INT32_MAX, &room) < 0)) return 125;
  if (lock_take(LOCK_FD, (unsigned)milliseconds) < 0) return errno == EWOULDBLOCK ? 1 : failed_with("lock");
  if (!bytes) return 0;
  int failed = reserve_at_end(FILE_FD, (off_t)room) < 0 ? failed_with("room") : 0;
  return lock_release(LOCK_FD) < 0 ? failed_with("unlock") : failed;
}

/*
 * No server notices: connecting a datagram socket sends nothing, and the kernel refuses another type of socket (EPROTOTYPE) before it asks
 * for a place in a queue. It finds the socket of any network namespace, which /proc/net/unix does not list. Only a file without a socket is
 * ECONNREFUSED, and it never gets one again: bind(2) makes a new file.
 */
static int is_unbound(const char *path) {
  struct stat status;
  int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), client = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = socket_address(file, ""); /* of a path of any length */
  int is_socket = file >= 0 && client >= 0 && fstat(file, &status) == 0 && S_ISSOCK(status.st_mode);
  int is_refused = is_socket && connect(client, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
  if (file >= 0) close(file);
  return close_with(client, is_refused);
}

static int print_unbound(char **path) {
  for (; *path; path++) putchar(is_unbound(*path) ? '1' : '0');
  return fflush(stdout) == 0 ? 0 : failed_with("print");
}

int runs_main(int argc, char **argv) {
  if (argc > 2 && argc < 5 && strcmp(argv[1], "lock") == 0) return take_lock(argv[2], argv[3]);
  if (argc == 3 && strcmp(argv[1], "make") == 0) return make(argv[2]);
  if (argc > 2 && strcmp(argv[1], "unbound") == 0) return print_unbound(argv + 2);
  const char *verb = argc > 2 ? argv[1] : "";
  int directory = argc > 2 ? records_open(argv[2]) : -1;
  if (argc > 2 && directory < 0) {
    fprintf(stderr, "runs: %s: %s\n", argv[2], strerror(errno));
    return 125;
  }
  if (argc == 3 && strcmp(verb, "list") == 0) return list(directory);
  if (argc == 3 && strcmp(verb, "prune") == 0) return printf("%d\n", records_prune(directory, PATIENCE_MS)) < 0 ? 125 : 0;
  if (argc == 4 && strcmp(verb, "kill") == 0) return records_each(directory, end_run, argv[3]) == 1 ? 0 : 1;
  if (argc == 4 && strcmp(verb, "remove") == 0) return remove_kept(directory, argv[3]);
  fprintf(stderr, "usage: runs list|prune DIRECTORY, runs kill DIRECTORY ID, runs make PATH, runs remove DIRECTORY NAME, runs unbound PATH..., runs lock MS [BYTES]\n");
  return 125;
}
