/*
 * Unit tests of the native part: pure functions, no sandbox, all in one program (make native-unit).
 *
 *     UNIT("a sign is not part of a number") { EXPECT_NUMBER(parse_number("+1", 9, &number), -1); }
 *
 * A failed expectation is printed and the unit continues; the sanitizers end the program at the first wrong access.
 */
#ifndef LLM_DO_UNIT_H
#define LLM_DO_UNIT_H

#include "lib/launch-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void unit_register(const char *title, void (*run)(void), const char *file);
void unit_expect(int holds, const char *claim, const char *file, int line);
void unit_expect_number(long long got, long long want, const char *what, const char *file, int line);
void unit_expect_text(const char *got, const char *want, const char *what, const char *file, int line);

/* Whether an expectation of this unit has failed: for a child, whose own ones its parent does not hear of. */
int unit_has_failed(void);

/* A new directory below /tmp, whose path is the answer until the next one is made; and its end, with all that is in it. */
const char *unit_directory(void);
void unit_remove(const char *path);
/* A file with these records, which end with `end`. */
struct launchfile unit_launchfile(const char *records, size_t size);

#define UNIT_JOIN(a, b) a##b
#define UNIT_NAME(prefix, line) UNIT_JOIN(prefix, line)
#define UNIT(title)                                                                                       \
  static void UNIT_NAME(unit_, __LINE__)(void);                                                           \
  __attribute__((constructor)) static void UNIT_NAME(register_, __LINE__)(void) {                         \
    unit_register(title, UNIT_NAME(unit_, __LINE__), __FILE__);                                           \
  }                                                                                                       \
  static void UNIT_NAME(unit_, __LINE__)(void)

#define EXPECT(claim) unit_expect(!!(claim), #claim, __FILE__, __LINE__)
#define EXPECT_NUMBER(got, want) unit_expect_number((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define EXPECT_TEXT(got, want) unit_expect_text(got, want, #got, __FILE__, __LINE__)

/* Elements of an array, for tables. */
#define COUNT(array) (sizeof(array) / sizeof *(array))
/* Words ended by NUL as a launch file has them: the literal's own NUL ends the last one. */
#define BYTES(literal) literal, sizeof(literal)

#endif
