#include "client/help-text.h"

#include "lib/files.h"
#include "lib/launch-file.h"
#include "lib/report-failure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXTS_MAX (1 << 20)
/* A command and its action. */
#define PATH_WORDS 2
#define PATH_MOST 64

static int is_either(const char *word, const char *one, const char *other) { return strcmp(word, one) == 0 || strcmp(word, other) == 0; }

/* Names of commands; a blank would make one word look like two. */
static int is_name(const char *word) { return word[0] != '-' && word[0] && word[strspn(word, "abcdefghijklmnopqrstuvwxyz-")] == 0; }

/* Writes the names before `end` with blanks between them. Returns 0 or -1. */
static int join_names(char *const *words, char *const *end, char path[PATH_MOST]) {
  size_t used = strlen(path);
  for (; words < end; words++) {
    size_t room = PATH_MOST - used;
    int wrote = is_name(*words) ? snprintf(path + used, room, "%s%s", used ? " " : "", *words) : -1;
    if (wrote < 0 || (size_t)wrote >= room) return -1;
    used += (size_t)wrote;
  }
  return 0;
}

/* Finds the command whose text is wanted: `COMMAND [ACTION] --help`, `help COMMAND [ACTION]`, `--version`. Returns 0, or -1 for any other words. */
static int path_of(int is_exec, char *const *words, char path[PATH_MOST]) {
  size_t count = 0;
  while (count <= PATH_WORDS + 1 && words[count]) count++;
  if (count == 0 || count > PATH_WORDS + 1) return -1;
  const char *last = words[count - 1];
  path[0] = 0;
  int is_version = is_either(last, "-V", "--version"), is_help = is_either(last, "-h", "--help");
  if (is_exec || (count > 1 && strcmp(words[0], "exec") == 0)) {
    if (count != (is_exec ? 1 : 2) || !(is_version || is_help)) return -1;
    return copy_text(path, PATH_MOST, is_version ? "--version" : "exec"), 0;
  }
  if (count == 1 && (is_version || strcmp(last, "version") == 0)) return copy_text(path, PATH_MOST, "--version"), 0;
  if (is_help) return join_names(words, words + count - 1, path);
  return strcmp(words[0], "help") == 0 ? join_names(words + 1, words + count, path) : -1;
}

static char *read_texts(const char *root, size_t *size) {
  char path[4200];
  if ((size_t)snprintf(path, sizeof path, "%s/dist/help-texts", root) >= sizeof path) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *texts = fd < 0 ? NULL : read_all(fd, TEXTS_MAX, size);
  if (fd >= 0) close(fd);
  return texts;
}

/* Pairs of words and text. */
static const char *find_text(const char *texts, size_t size, const char *path) {
  const char *end = texts + size;
  for (const char *words = texts; words < end;) {
    const char *text = memchr(words, 0, (size_t)(end - words));
    const char *after = text && ++text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    if (!after) return NULL;
    if (strcmp(words, path) == 0) return text;
    words = after + 1;
  }
  return NULL;
}

/* A reader that went away is not our failure. */
static int print(const char *text) {
  signal(SIGPIPE, SIG_IGN);
  return write_all(STDOUT_FILENO, text, strlen(text)) == 0 || errno == EPIPE;
}

int print_help(const char *root, int is_exec, char *const *words) {
  char path[PATH_MOST];
  size_t size = 0;
  /* The file would become a stdout that the caller has closed. */
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0 || path_of(is_exec, words, path) < 0) return 0;
  char *texts = read_texts(root, &size);
  const char *text = texts ? find_text(texts, size, path) : NULL;
  int printed = text && print(text);
  free(texts);
  return printed;
}
