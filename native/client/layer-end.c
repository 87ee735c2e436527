#include "client/layer-end.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAX 128
#define DIRECTORIES_MAX 16
#define ID_MAX 65
#define ID_SHOWN 8 /* as src/cow/pending.ts has it */

/* The last name of the path that launch has reported. */
static int read_id(const char *status, char id[ID_MAX]) {
  static const char KEY[] = "\"" STATUS_LAYER "\":\"", LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  const char *at = strstr(status, KEY), *end = at ? strchr(at + strlen(KEY), '"') : NULL;
  while (end && end > at && strchr(LETTERS, end[-1])) end--;
  size_t length = end ? strspn(end, LETTERS) : 0;
  if (length == 0 || length >= ID_MAX || end[-1] != '/') return -1;
  memcpy(id, end, length);
  id[length] = 0;
  return 0;
}

/* The caller's secret is in there. */
static char *runtime_variable(void) {
  static char text[4096];
  const char *value = getenv("XDG_RUNTIME_DIR");
  int length = value ? snprintf(text, sizeof text, "XDG_RUNTIME_DIR=%s", value) : -1;
  return length > 0 && (size_t)length < sizeof text ? text : NULL;
}

/* Node repeats the messages of stderr. */
static int start(char *const *argv, int out, pid_t *child) {
  posix_spawn_file_actions_t actions;
  char *environment[] = {runtime_variable(), NULL};
  if (posix_spawn_file_actions_init(&actions)) return -1;
  int failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) || posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) ||
               posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) || posix_spawn(child, argv[0], &actions, NULL, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  return failed ? -1 : 0;
}

static void read_answer(int fd, char answer[ANSWER_MAX]) {
  size_t size = 0;
  ssize_t got;
  while (size < ANSWER_MAX - 1 && ((got = read(fd, answer + size, ANSWER_MAX - 1 - size)) > 0 || (got < 0 && errno == EINTR))) size += got > 0 ? (size_t)got : 0;
  answer[size] = 0;
}

/* 0, or -1 where it has failed. */
static int ask(char *const *argv, char answer[ANSWER_MAX]) {
  int ends[2], status = -1;
  pid_t child;
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  int started = start(argv, ends[1], &child);
  close(ends[1]);
  if (started == 0) read_answer(ends[0], answer);
  close(ends[0]);
  while (started == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return started == 0 && status == 0 ? 0 : -1;
}

/* In the words of src/cow/pending.ts. */
static int write_line(const char *answer, const char *id, char *text, size_t room) {
  unsigned long applied, narrowed, left;
  text[0] = 0;
  if (!answer[0]) return 0; /* nothing was changed */
  if (sscanf(answer, "%lu %lu %lu", &applied, &narrowed, &left) != 3) return -1;
  size_t size = (size_t)snprintf(text, room, "%lu applied", applied);
  if (left) size += (size_t)snprintf(text + size, room - size, ", %lu left out", left);
  if (narrowed) size += (size_t)snprintf(text + size, room - size, ", %lu modes narrowed", narrowed);
  snprintf(text + size, room - size, ": llm-do undo %.*s", ID_SHOWN, id);
  return 0;
}

/* Behind the ID, the directories in which an apply may prepare what goes to another mount (tools/layer-stage.h). -1: there are none. */
static int add_directories(const struct launchfile *file, char **argv, size_t room) {
  struct entry entry;
  size_t position = 0, count = 0;
  while (launchfile_next_of(file, V_APPLY, &position, &entry))
    if (count < room) argv[count++] = (char *)(uintptr_t)entry.word[0];
  return count ? 0 : -1;
}

int layer_apply_at_end(const struct result *result, const char *root, char *text, size_t room) {
  char program[4200], id[ID_MAX], answer[ANSWER_MAX] = "";
  char *argv[5 + DIRECTORIES_MAX + 1] = {program, "__layers", "end", NULL, id};
  struct entry cow;
  if (add_directories(result->file, argv + 5, DIRECTORIES_MAX) < 0 || !launchfile_find(result->file, V_COW, &cow) || read_id(result->status, id) < 0) return -1;
  argv[3] = (char *)(uintptr_t)cow.word[0];
  snprintf(program, sizeof program, "%s/bin/llm-do", root);
  return ask(argv, answer) < 0 ? -1 : write_line(answer, id, text, room);
}
