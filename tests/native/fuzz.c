/*
 * fuzz FILE COUNT SEED   feeds mutations of the launch file in FILE to its reader, and of a record to the reader of records.
 * The same seed makes the same mutations. Each one lies in memory of exactly its size, so that a sanitizer sees a byte too far.
 * A file is refused, or what was accepted can be written again to the same bytes. Its answer is refused, or can be filled in.
 */
#include "../../native/launchfile.h"
#include "../../native/record.h"
#include "../../native/result.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;
static int null;
static long answers;

/* xorshift64*: Vigna 2016. */
static uint64_t next_random(void) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return state * 0x2545F4914F6CDD1Dull;
}

static size_t below(size_t limit) { return limit ? (size_t)(next_random() % limit) : 0; }

static const char *const WORDS[] = {"",       "end",  "zone", "tmpfs", "18446744073709551616", "-1", " 1", "0x10", "999999999999999999999999",
                                    "00000001", "/..", "..",   "/",     "rw",                   "protect", "llm-do-launch-2", "\xff\xfe", "result", "capture", "stdout", "command", "all"};

/* Puts a word, its NUL included, at a random place. */
static size_t insert_word(char *bytes, size_t size, size_t room) {
  const char *word = WORDS[below(sizeof WORDS / sizeof *WORDS)];
  size_t length = strlen(word) + 1, at = below(size + 1);
  if (size + length > room) return size;
  memmove(bytes + at + length, bytes + at, size - at);
  memcpy(bytes + at, word, length);
  return size + length;
}

static size_t cut(char *bytes, size_t size) {
  size_t from = below(size), length = below(size - from) / 4 + 1;
  if (from + length > size) return size;
  memmove(bytes + from, bytes + from + length, size - from - length);
  return size - length;
}

static size_t mutate(char *bytes, size_t size, size_t room) {
  for (size_t left = below(8) + 1; left > 0; left--) {
    switch (below(5)) {
      case 0: if (size) bytes[below(size)] ^= (char)(1 << below(8)); break;
      case 1: if (size) bytes[below(size)] = 0; break;
      case 2: size = insert_word(bytes, size, room); break;
      case 3: if (size) size = cut(bytes, size); break;
      default: size = below(8) ? size : below(size + 1); break;
    }
  }
  return size;
}

static void parse_all(const struct record *record) {
  uint64_t number;
  unsigned mode;
  for (int i = 0; i < RECORD_MAX_WORDS && record->word[i]; i++) {
    if (parse_number(record->word[i], 1000, &number) == 0 && number > 1000) errx(1, "parse_number above its limit");
    if (parse_mode(record->word[i], &mode) == 0 && mode > 01777) errx(1, "parse_mode above its limit");
  }
}

/* Walks an accepted file; its records must account for every byte. */
static void walk(const struct launchfile *file) {
  struct record record;
  size_t position = 0, accounted = sizeof LAUNCHFILE_MAGIC;
  const char *before = file->bytes + sizeof LAUNCHFILE_MAGIC;
  while (launchfile_next(file, &position, &record)) {
    parse_all(&record);
    if (record.end <= before) errx(1, "a record ends before it begins");
    accounted += (size_t)(record.end - before);
    before = record.end;
  }
  if (accounted + sizeof "end" != file->size) errx(1, "%zu of %zu bytes are in records", accounted, file->size);
}

static void try_answer(const struct launchfile *file) {
  static char word[] = "true", *words[] = {word, NULL};
  static const char status[] = "{\"cause\":\"exit\",\"waitStatus\":256,\"begunNs\":1,\"startedNs\":2,\"endedNs\":3}";
  struct capture capture;
  if (!result_is_sound(file)) return;
  int opened = capture_open(&capture, file);
  capture_finish(&capture);
  struct result result = {file, status, words, &capture};
  if (opened == 0 && capture.is_on) {
    result_needs_no_words(&result);
    if (!result_is_text(&result) || result_write(&result, null) != 0) errx(1, "an answer that cannot be told");
    answers++;
  }
  for (int i = 0; i < CAPTURE_POLLS; i++) free(capture.stream[i].bytes);
}

static int try_launch_file(const char *bytes, size_t size) {
  struct launchfile file;
  const char *problem = NULL;
  if (launchfile_check(bytes, size, &file, &problem) == 0) {
    walk(&file);
    try_answer(&file);
    free((void *)(uintptr_t)file.records); /* the helpers read one file and keep it */
    return 1;
  }
  if (!problem || !*problem) errx(1, "refused without a reason");
  return 0;
}

static void try_record(const char *bytes, size_t size) {
  static const char *const KEYS[] = {"id", "pid", "cgroup", "placeholder", "word", ""};
  struct record_content content = {.bytes = bytes, .size = size};
  for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
    for (int n = 0; n < 4; n++) {
      const char *value = record_value(&content, KEYS[i], n);
      if (value && (value < bytes || value + strlen(value) >= bytes + size)) errx(1, "a value outside of the record");
      if (value) is_run_id(value);
    }
}

int main(int argc, char **argv) {
  if (argc != 4) errx(2, "usage: fuzz FILE COUNT SEED");
  int fd = open(argv[1], O_RDONLY);
  null = open("/dev/null", O_WRONLY);
  size_t size = 0;
  char *original = fd < 0 ? NULL : read_all(fd, LAUNCHFILE_MAX, &size);
  if (!original) err(2, "%s", argv[1]);
  if (!try_launch_file(original, size)) errx(1, "the file itself is refused");
  state = strtoull(argv[3], NULL, 10) | 1;
  size_t room = size + 4096, accepted = 0;
  char *scratch = malloc(room);
  for (long left = atol(argv[2]); left > 0; left--) {
    memcpy(scratch, original, size);
    size_t length = mutate(scratch, size, room);
    char *exact = malloc(length ? length : 1);
    memcpy(exact, scratch, length);
    accepted += (size_t)try_launch_file(exact, length);
    try_record(exact, length);
    free(exact);
  }
  printf("accepted %zu, answers %ld\n", accepted, answers);
  free(scratch), free(original);
  close(fd);
  return 0;
}
