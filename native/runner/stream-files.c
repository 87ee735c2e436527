#include "runner/stream-files.h"

#include "lib/files.h"
#include "lib/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* A longer stdin is carried: a copy takes memory and the time of the start, about 0.2 ms for this much. */
#define COPY_MAX (1 << 20)
#define PIECE (64 << 10)

/* Written by a relay, read when that has ended. */
struct said {
  size_t seen;
  char bytes[SAID_MAX];
};

static int is_file(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

/* ---- relays ---- */

/* The reader has gone: what it has not read is still the caller's. */
static _Noreturn void give_back(int from, int to, size_t left) {
  int unread = 0;
  (void)ioctl(to, FIONREAD, &unread);
  (void)lseek(from, -(off_t)(left + (size_t)unread), SEEK_CUR);
  _exit(0);
}

/* Descriptors of a relay. */
enum { FROM, TO, STOP, PLACES };

/* Some files below /proc wait for what they have; a reader that goes meanwhile is an error of the pipe. */
static void await_bytes(int is_input) {
  struct pollfd watched[] = {{FROM, POLLIN, 0}, {is_input ? TO : STOP, 0, 0}};
  while (poll(watched, 2, -1) < 0 && errno == EINTR) continue;
  if (is_input && watched[1].revents) give_back(FROM, TO, 0);
  if (watched[1].revents && !watched[0].revents) _exit(0);
}

static void keep(struct said *said, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) said->bytes[said->seen++ % SAID_MAX] = bytes[i];
}

static _Noreturn void carry(int is_input, struct said *said) {
  static char bytes[PIECE];
  for (;;) {
    await_bytes(is_input);
    ssize_t got = read(FROM, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(got < 0 ? errno : 0);
    if (said) keep(said, bytes, (size_t)got);
    size_t written = write_most(TO, bytes, (size_t)got);
    if (written == (size_t)got) continue;
    if (is_input && errno == EPIPE) give_back(FROM, TO, (size_t)got - written);
    _exit(errno == EPIPE ? 0 : errno); /* the reader has gone: the command learns it from its pipe */
  }
}

/* It has nothing else, ends with the pipe, and no signal of a terminal or a group ends it before. SIGPIPE and SIGXFSZ are ignored. */
static _Noreturn void become_relay(const int given[PLACES], int is_input, struct said *said) {
  sigset_t all;
  sigfillset(&all);
  if (place_descriptors(given, PLACES) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0) _exit(errno);
  if (is_input && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) _exit(errno);
  carry(is_input, said);
}

/* Returns the command's end of a pipe, or -1. */
static int start_relay(struct stream_files *files, int which, int file, struct said *said) {
  int ends[2], is_input = which == 0;
  if (files->stop[0] < 0 && pipe2(files->stop, O_CLOEXEC) < 0) return -1;
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  int ours = ends[is_input], theirs = ends[!is_input];
  /* The command may have another id, and opens /dev/stdout again. */
  if (fchmod(theirs, is_input ? 0644 : 0622) < 0) return -1;
  pid_t child = fork();
  if (child == 0) become_relay((int[PLACES]){is_input ? file : ours, is_input ? ours : file, files->stop[0]}, is_input, said);
  if (close_with(ours, child) > 0) return files->relay[which] = child, theirs;
  return close_with(theirs, -1);
}

/* ---- a copy ---- */

/* False for file systems whose reads may wait for a server. */
static int is_local(int fd) {
  static const unsigned long remote[] = {FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, V9FS_MAGIC, CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC};
  struct statfs status;
  struct pollfd ready = {fd, POLLIN, 0};
  if (fstatfs(fd, &status) < 0 || poll(&ready, 1, 0) != 1 || !(ready.revents & POLLIN)) return 0;
  for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
    if ((unsigned long)status.f_type == remote[i]) return 0;
  return 1;
}

/* Returns 1 when all is there, 0 when it is too much or cannot be read at a place. */
static int copy_all(int from, int to) {
  static char bytes[PIECE];
  off_t at = 0;
  for (ssize_t got; (got = pread(from, bytes, sizeof bytes, at)) != 0; at += got)
    if (got < 0 || at + got > COPY_MAX || pwrite(to, bytes, (size_t)got, at) != got) return 0;
  return 1;
}

/* Returns the command's descriptor, or -1 where a relay has to do. */
static int copy_input(struct stream_files *files, int file) {
  struct stat status;
  if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > COPY_MAX || !is_local(file)) return -1;
  off_t position = lseek(file, 0, SEEK_CUR);
  int memory = position < 0 ? -1 : memfd_create("stdin", MFD_CLOEXEC);
  int copy = memory >= 0 && copy_all(file, memory) ? open(fd_path(memory).text, O_RDONLY | O_CLOEXEC) : -1; /* like the caller's */
  if (close_with(memory, copy) < 0) return -1;
  (void)lseek(copy, position, SEEK_SET);
  files->source = fcntl(file, F_DUPFD_CLOEXEC, 3);
  files->copy = fcntl(copy, F_DUPFD_CLOEXEC, 3);
  return copy;
}

/* ---- all three ---- */

/* Opened in the other direction: reading or writing it fails as it does with the caller's. */
static int is_opened_for(int fd, int which) {
  int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  return mode == O_RDWR || mode == (which == 0 ? O_RDONLY : O_WRONLY);
}

static int replace(struct stream_files *files, int which, int fd, struct said *said) {
  if (!is_opened_for(fd, which)) return open("/dev/null", O_CLOEXEC | (which == 0 ? O_WRONLY : O_RDONLY));
  int copy = which == 0 ? copy_input(files, fd) : -1;
  return copy >= 0 ? copy : start_relay(files, which, fd, said);
}

static int are_same_file(int one, int other) {
  struct stat a, b;
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int is_same_opening(int one, int other) {
  long order = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, one, other);
  if (order >= 0) return order == 0;
  return are_same_file(one, other) && fcntl(one, F_GETFL) == fcntl(other, F_GETFL);
}

static int is_socket(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int is_pipe(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/* One pipe for both keeps their output in order. A pipe that was opened twice stays as it is: two relays would not keep that order. */
static int is_carried(const struct stream_files *files, const int given[3], int which, int is_shared) {
  if (is_file(given[which]) || (files->carries_sockets && is_socket(given[which]))) return 1;
  if (!files->keeps_errors || !is_pipe(given[2])) return 0;
  return which == 2 ? is_shared || !are_same_file(given[1], given[2]) : which == 1 && is_shared;
}

static struct said *new_said(void) {
  void *said = mmap(NULL, sizeof(struct said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return said == MAP_FAILED ? NULL : said;
}

int stream_files_replace(struct stream_files *files, int fds[3], int *which) {
  int given[] = {fds[0], fds[1], fds[2]}, is_shared = is_same_opening(given[1], given[2]), kept = is_shared ? 1 : 2;
  if (files->keeps_errors && is_carried(files, given, kept, is_shared)) files->said = new_said();
  for (int i = 0; i < 3; i++) {
    if (!is_carried(files, given, i, is_shared)) continue;
    int made = i == 2 && is_shared ? fcntl(fds[1], F_DUPFD_CLOEXEC, 3) : replace(files, i, given[i], i == kept ? files->said : NULL);
    if (made < 0) return *which = i, -1;
    fds[i] = made;
  }
  return 0;
}

const char *stream_files_said(const struct stream_files *files) {
  static const char DIGITS[] = "0123456789abcdef";
  static char text[2 * SAID_MAX + 1];
  const struct said *said = files->said;
  if (!said || !said->seen) return NULL;
  size_t size = said->seen < SAID_MAX ? said->seen : SAID_MAX;
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = (unsigned char)said->bytes[(said->seen - size + i) % SAID_MAX];
    text[2 * i] = DIGITS[byte >> 4], text[2 * i + 1] = DIGITS[byte & 15];
  }
  text[2 * size] = 0;
  return text;
}

int stream_files_on_end(struct stream_files *files, pid_t child, int status, int *error) {
  for (int i = 0; i < 3; i++) {
    if (child <= 0 || files->relay[i] != child) continue;
    files->relay[i] = 0;
    *error = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return i;
  }
  return -1;
}

int stream_files_is_relay(const struct stream_files *files, pid_t child) {
  return child == files->relay[0] || child == files->relay[1] || child == files->relay[2];
}

int stream_files_are_busy(const struct stream_files *files) { return files->relay[0] || files->relay[1] || files->relay[2]; }

void stream_files_stop(struct stream_files *files) {
  for (int i = 0; i < 2; i++) {
    if (files->stop[i] >= 0) close(files->stop[i]);
    files->stop[i] = -1;
  }
}

void stream_files_finish(struct stream_files *files) {
  if (files->copy < 0) return;
  off_t position = lseek(files->copy, 0, SEEK_CUR);
  if (position >= 0) (void)lseek(files->source, position, SEEK_SET);
  close(files->copy), close(files->source);
  files->copy = files->source = -1;
}
