/* The launch file, and the answer that a cached one holds: the client, launch, the stager and init read it. */
#include "lib/launch-file.h"
#include "client/result.h"
#include "fuzz.h"

#include <fcntl.h>

static void parse_words(const struct entry *entry) {
  uint64_t number;
  unsigned mode;
  for (int i = 0; i < ENTRY_WORDS_MAX && entry->word[i]; i++) {
    if (parse_number(entry->word[i], 1000, &number) == 0 && number > 1000) WRONG("parse_number above its limit");
    if (parse_mode(entry->word[i], &mode) == 0 && mode > 01777) WRONG("parse_mode above its limit");
  }
}

/* The records of an accepted file account for every byte. */
static void check_records(const struct launchfile *file) {
  struct entry entry = {0};
  size_t position = 0, accounted = sizeof LAUNCH_FILE_MAGIC;
  const char *before = file->bytes + sizeof LAUNCH_FILE_MAGIC;
  while (launchfile_next(file, &position, &entry)) {
    parse_words(&entry);
    if (entry.end <= before) WRONG("a record ends before it begins");
    accounted += (size_t)(entry.end - before);
    before = entry.end;
  }
  if (accounted + sizeof "end" != file->size) WRONG("%zu of %zu bytes are in records", accounted, file->size);
}

static void fill_in_answer(const struct launchfile *file) {
  static char word[] = "true", *words[] = {word, NULL};
  static const char status[] = "{\"reason\":\"exit\",\"code\":\"\",\"exitCode\":1,\"signal\":0,\"exitStatus\":1,\"begunNs\":1,\"startedNs\":2,\"endedNs\":3}";
  static int null = -1;
  struct capture capture;
  struct entry entry;
  if (null < 0) null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (!result_is_sound(file)) return;
  int opened = capture_open(&capture, file);
  capture_finish(&capture);
  const struct audit_line line = {.decided_by = "policy"};
  struct result result = {.file = file, .status = status, .command = words, .capture = &capture};
  if (result_read(&result) < 0) WRONG("the line of launch cannot be read");
  if (opened == 0 && capture.is_on) {
    result_is_known(&result);
    if (!result_is_plain(&result) || result_write(&result, null) != 0) WRONG("an accepted answer cannot be written");
  }
  if (launchfile_find(file, V_AUDIT, &entry) && result_write_record(&result, &line, null) != 0) WRONG("an accepted line of the audit log cannot be written");
  for (int i = 0; i < CAPTURE_POLLS; i++) free(capture.stream[i].bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct launchfile file;
  const char *problem = NULL;
  if (launchfile_check((const char *)data, size, &file, &problem) < 0) {
    if (!problem || !*problem) WRONG("refused without a reason");
    return 0;
  }
  check_records(&file);
  fill_in_answer(&file);
  free((void *)(uintptr_t)file.index); /* the programs read one file and keep it */
  free((void *)(uintptr_t)file.range);
  return 0;
}
