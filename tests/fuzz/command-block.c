/* The block of argv and environment that init gets. init refuses by ending; here it jumps back. */
#include "fuzz.h"

#include <setjmp.h>

static jmp_buf refused;
/* A jump leaves memory behind that the end of the process would have freed. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

static _Noreturn void refuse(void) { longjmp(refused, 1); }

#define main init_main
#include "sandbox/init.c"
#undef main

void fail_through(int fd) { (void)fd; }
_Noreturn void fail(const char *step, const char *path) { (void)step, (void)path, refuse(); }
_Noreturn void fail_with(int error, const char *step, const char *path) { (void)error, (void)step, (void)path, refuse(); }
uint64_t now_ns(void) { return 0; }
int report_send(int fd, const struct report *report, const int *fds, int count) { return (void)fd, (void)report, (void)fds, (void)count, -1; }
void copy_text(char *to, size_t room, const char *text) { snprintf(to, room, "%s", text); }

static void check_words(char **words, const char *bytes, size_t size) {
  for (; *words; words++)
    if (*words < bytes || *words + strlen(*words) >= bytes + size) WRONG("a word outside of the block");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *block = malloc(size ? size : 1);
  memcpy(block, data, size);
  if (setjmp(refused) == 0) {
    struct command command = parse_command(block, size);
    check_words(command.argv, block, size);
    check_words(command.env, block, size);
    free(command.argv);
    free(command.env);
  }
  free(block);
  return 0;
}
