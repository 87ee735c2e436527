/* The filter in a launch file, and the question which calls it lets through. */
#include "sandbox/seccomp-eval.h"
#include "sandbox/confine.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char head[] = LAUNCH_FILE_MAGIC "\0seccomp", tail[] = "\0end";
  if (memchr(data, 0, size)) return 0;
  size_t total = sizeof head + size + sizeof tail;
  char *bytes = malloc(total);
  memcpy(bytes, head, sizeof head);
  memcpy(bytes + sizeof head, data, size);
  memcpy(bytes + sizeof head + size, tail, sizeof tail);
  struct launchfile file;
  struct sock_fprog program;
  const char *problem;
  if (launchfile_check(bytes, total, &file, &problem) < 0) WRONG("the file is refused: %s", problem);
  if (seccomp_read(&file, &program) == 0)
    for (int number = 0; number < 512; number++) filter_lets_through(&program, number);
  free((void *)(uintptr_t)file.index);
  free((void *)(uintptr_t)file.range);
  free(bytes);
  return 0;
}
