#include "client/failed-run.h"

#include "lib/run-record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ID_LENGTH 11

struct text {
  size_t size;
  char bytes[32 << 10]; /* longer command lines are not kept */
};

/* Returns 0, or -1 where it does not fit. */
static int put(struct text *text, const char *word, size_t length) {
  if (length + 1 > sizeof text->bytes - text->size) return -1;
  memcpy(text->bytes + text->size, word, length);
  text->bytes[text->size + length] = 0;
  text->size += length + 1;
  return 0;
}

static int put_word(struct text *text, const char *word) { return put(text, word, strlen(word)); }

/* The caller has the values of `--env` when the run is made again. */
static int put_words(struct text *text, const struct call *call) {
  const char *before = "";
  for (char **word = call->words; *word; before = *word++) {
    int is_option = word >= call->options && word < call->options_end;
    const char *variable = is_option ? call_variable(*word, before) : NULL;
    if (put(text, *word, variable ? (size_t)(strchr(variable, '=') - *word) : strlen(*word)) < 0) return -1;
  }
  return 0;
}

static int write_record(struct text *text, const struct call *call, int status) {
  char directory[PATH_MAX], number[16];
  struct stat input;
  int is_given = fstat(STDIN_FILENO, &input) == 0 && !S_ISCHR(input.st_mode);
  snprintf(number, sizeof number, "%d", status);
  if (!getcwd(directory, sizeof directory)) return -1;
  if (put_word(text, FAILED_RUN_MAGIC) < 0 || put_word(text, number) < 0 || put_word(text, is_given ? "given" : "none") < 0) return -1;
  return put_word(text, directory) < 0 ? -1 : put_words(text, call);
}

/* Next to the directory of live runs. */
static int open_directory(const struct launchfile *file) {
  struct entry runs;
  char path[PATH_MAX];
  if (!launchfile_find(file, V_RUNS, &runs)) return -1;
  const char *slash = strrchr(runs.word[0], '/');
  int length = slash ? (int)(slash - runs.word[0]) : 0;
  return snprintf(path, sizeof path, "%.*s/" FAILED_RUNS_DIRECTORY, length, runs.word[0]) < (int)sizeof path ? records_open(path) : -1;
}

/* In one write: a reader that comes before it finds nothing in the file. */
static int store(int directory, const struct text *text) {
  char name[32];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(name, sizeof name, "%0*llx", ID_LENGTH, (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000);
  int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int is_written = write(fd, text->bytes, text->size) == (ssize_t)text->size;
  close(fd);
  if (!is_written) (void)unlinkat(directory, name, 0);
  return is_written ? 0 : -1;
}

static int is_id(const char *name) { return strspn(name, "0123456789abcdef") == ID_LENGTH && !name[ID_LENGTH]; }

/* The names are times, so the first is the oldest. Returns 1 where one was too many and has gone. */
static int drop_oldest(DIR *listing) {
  char oldest[ID_LENGTH + 1] = "~"; /* behind every other */
  int count = 0;
  rewinddir(listing);
  for (struct dirent *entry; (entry = readdir(listing));) {
    if (!is_id(entry->d_name)) continue;
    count++;
    if (strcmp(entry->d_name, oldest) < 0) memcpy(oldest, entry->d_name, sizeof oldest);
  }
  return count > FAILED_RUNS_MAX && (unlinkat(dirfd(listing), oldest, 0) == 0 || errno == ENOENT);
}

/* Runs that end at once may all drop the same one, so one look is not enough. */
static void drop_more_than_are_kept(int directory) {
  DIR *listing = fdopendir(directory);
  if (!listing) return (void)close(directory);
  while (drop_oldest(listing));
  closedir(listing);
}

void failed_run_keep(const struct call *call, const struct launchfile *file, int status) {
  static struct text text;
  text.size = 0;
  if (write_record(&text, call, status) < 0) return;
  int directory = open_directory(file);
  if (directory < 0) return;
  if (store(directory, &text) == 0) drop_more_than_are_kept(directory);
  else close(directory);
}
