/* The record of a run: ps, kill, prune and the next launch read it. */
#include "lib/run-record.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const keys[] = {"id", "pid", "cgroup", "word", ""};
  const char *bytes = (const char *)data;
  struct record_content content = {.bytes = bytes, .size = size};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    for (int n = 0; n < 4; n++) {
      const char *value = record_value(&content, keys[i], n);
      if (value && (value < bytes || value + strlen(value) >= bytes + size)) WRONG("a value outside of the record");
      if (value) is_run_id(value);
    }
  return 0;
}
