#include "client/program.h"

#include "lib/files.h"
#include "lib/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer ones are node's to find: two of them, and what is called from here, use one page of the stack (lib/pages.h). */
#define PLACE_MAX 1000

/* ---- paths ---- */

static int has_word(const char *path, const char *word) {
  size_t length = strlen(word);
  for (const char *at = path; (at = strstr(at, word)); at++)
    if ((at == path || at[-1] == '/') && (at[length] == 0 || at[length] == '/')) return 1;
  return 0;
}

static int is_of_toolchain(const char *path) {
  static const char *const WORDS[] = {TOOLCHAIN_WORDS};
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
    if (has_word(path, WORDS[i])) return 1;
  return 0;
}

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && strcmp(text + length - size, end) == 0;
}

/* The canonical path of an open file, or -1. */
static int path_of(int fd, char *path, size_t room) {
  ssize_t length = readlink(fd_path(fd).text, path, room);
  if (length <= 0 || (size_t)length == room || path[0] != '/') return -1;
  path[length] = 0;
  return 0;
}

static int canonical_directory_of(const char *place, char *path, size_t room) {
  char directory[PLACE_MAX];
  const char *slash = strrchr(place, '/');
  int length = !slash ? snprintf(directory, sizeof directory, ".") : snprintf(directory, sizeof directory, "%.*s", (int)(slash - place) + 1, place);
  int fd = (size_t)length < sizeof directory ? openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  return close_with(fd, fd < 0 ? -1 : path_of(fd, path, room));
}

/* ---- the lookup ---- */

enum look { NO_FILE, FOUND, UNKNOWN };

/* The kinds of failure that src/host/paths.ts takes for "no file here", too. */
static enum look look_failed(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP || error == ENAMETOOLONG ? NO_FILE : UNKNOWN;
}

static enum look look_at(const char *place, char *real, size_t room) {
  struct stat status;
  int fd = openat(AT_FDCWD, place, O_PATH | O_CLOEXEC);
  if (fd < 0) return look_failed(errno);
  enum look look = fstat(fd, &status) < 0 ? UNKNOWN : S_ISREG(status.st_mode) ? FOUND : NO_FILE;
  if (look == FOUND && path_of(fd, real, room) < 0) look = UNKNOWN;
  return close_with(fd, look);
}

/* Relative and empty entries are the caller's directory: the plan passes them over. */
static enum look search(const char *name, const char *path, char *place, size_t room, char *real) {
  const size_t name_length = strlen(name);
  for (const char *entry = path; *entry; entry += *entry == ':') {
    size_t length = strcspn(entry, ":");
    if (*entry == '/') {
      if (length + 1 + name_length >= room) return UNKNOWN;
      memcpy(place, entry, length);
      place[length] = '/';
      memcpy(place + length + 1, name, name_length + 1);
      enum look look = look_at(place, real, PATH_MAX);
      if (look != NO_FILE) return look;
    }
    entry += length;
  }
  return NO_FILE;
}

/* src/plan/toolchain.ts resolves `..` and a slash at the end as text, the kernel does not: such names are node's. */
static int is_plain(const char *name, const char *path) {
  for (const char *entry = strstr(path, "..") ? path : ""; *entry; entry += *entry == ':') {
    char word[PLACE_MAX];
    size_t length = strcspn(entry, ":");
    if (length >= sizeof word) return 0;
    snprintf(word, sizeof word, "%.*s", (int)length, entry);
    if (has_word(word, "..")) return 0;
    entry += length;
  }
  return *name && !has_word(name, "..") && !ends_with(name, "/") && !ends_with(name, ".wasm");
}

static enum look find(const char *name, const char *path, struct program *program) {
  char place[PLACE_MAX], directory[PLACE_MAX];
  enum look look = UNKNOWN;
  program->real[0] = 0;
  if (!is_plain(name, path)) return UNKNOWN;
  if (!strchr(name, '/')) look = search(name, path, place, sizeof place, program->real);
  else if ((size_t)snprintf(place, sizeof place, "%s", name) < sizeof place) look = look_at(place, program->real, sizeof program->real);
  if (look != FOUND) return look;
  if (canonical_directory_of(place, directory, sizeof directory) < 0) return UNKNOWN;
  return is_of_toolchain(place) || is_of_toolchain(directory) || is_of_toolchain(program->real) ? UNKNOWN : FOUND;
}

void program_find(const char *name, const char *path, struct program *program) {
  program->key = find(name, path ? path : "", program) == UNKNOWN ? name : KEY_ANY_PROGRAM;
  if (program->key == name) program->real[0] = 0;
}

/* ---- in the plan ---- */

int program_is_shown(const struct program *program, const struct launchfile *file) {
  static const char *const SYSTEM[] = {"/usr", "/bin", "/sbin"};
  struct entry entry;
  size_t position = 0;
  if (!program->real[0]) return 1;
  for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
    if (is_at_or_below(program->real, SYSTEM[i])) return 1;
  while (launchfile_next_of(file, V_ZONE, &position, &entry))
    if (is_at_or_below(program->real, entry.word[0])) return 1;
  return 0;
}
