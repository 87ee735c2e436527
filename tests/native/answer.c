/*
 * answer FILE STATUS OUT ERR COMMAND...   what the client makes of a run of COMMAND whose launch reported the line STATUS, and
 * which wrote the contents of OUT and ERR. FILE is a launch file with an answer.
 * Prints the answer and exits with 0, or prints what it would hand to node and exits with 3: the line about the streams, then what
 * was kept of them.
 */
#include "client/result.h"
#include "load.h"

#include <sys/wait.h>

static void copy(int from, int to) {
  char bytes[32 << 10];
  ssize_t got;
  while ((got = read(from, bytes, sizeof bytes)) > 0)
    for (ssize_t done = 0, sent; done < got; done += sent)
      if ((sent = write(to, bytes + done, (size_t)(got - done))) < 0) err(2, "write");
  if (got < 0) err(2, "read");
}

/* The command is another process, since pipes hold little. */
static pid_t print(const struct capture *capture, char **files) {
  pid_t pid = fork();
  if (pid < 0) err(2, "fork");
  if (pid > 0) return pid;
  for (int i = 0; i < CAPTURE_POLLS; i++) {
    int fd = open(files[i], O_RDONLY);
    if (fd < 0) err(2, "%s", files[i]);
    copy(fd, capture->stream[i].theirs);
  }
  _exit(0);
}

static void read_while(struct capture *capture, pid_t pid) {
  struct pollfd watched[CAPTURE_POLLS];
  int status;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    capture_watch(capture, watched);
    if (poll(watched, CAPTURE_POLLS, 1) > 0) capture_read(capture, watched);
  }
  if (status != 0) errx(2, "the writer failed");
  capture_finish(capture);
}

static int hand_over(const struct capture *capture) {
  char line[256];
  int fd[CAPTURE_POLLS];
  if (capture_hand_over(capture, line, sizeof line) < 0) err(2, "capture_hand_over");
  if (sscanf(line, "{\"stdout\":{\"fd\":%d", &fd[0]) != 1 || sscanf(strstr(line, "\"stderr\""), "\"stderr\":{\"fd\":%d", &fd[1]) != 1) errx(2, "%s", line);
  dprintf(1, "%s\n", line);
  for (int i = 0; i < CAPTURE_POLLS; i++) copy(fd[i], 1);
  return 3;
}

int main(int argc, char **argv) {
  struct capture capture;
  size_t length;
  if (argc < 6) errx(2, "usage: answer FILE STATUS OUT ERR COMMAND...");
  struct launchfile file = load_launchfile(argv[1]);
  char *status = load(argv[2], &length);
  status[length] = 0;
  if (!result_is_sound(&file) || capture_open(&capture, &file) < 0) errx(2, "no answer");
  read_while(&capture, print(&capture, argv + 3));
  struct result result = {.file = &file, .status = status, .command = argv + 5, .capture = &capture};
  int is_known = result_read(&result) == 0 && result_is_known(&result) && result_is_plain(&result) && !result_needs_words(&result);
  _exit(is_known ? result_write(&result, 1) : hand_over(&capture)); /* what is kept is never given back, as in the client */
}
