#include "lib/children.h"
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

/* Their numbers fill more than one page, which is the most that the kernel gives at once. */
#define CHILDREN 1200

struct found {
  const pid_t *children;
  int *times;
  int *others;
};

static void note(pid_t child, const void *context) {
  const struct found *found = context;
  for (int i = 0; i < CHILDREN; i++)
    if (found->children[i] == child) {
      found->times[i]++;
      return;
    }
  ++*found->others;
}

UNIT("each of a thousand children is named once, and nothing else") {
  static pid_t children[CHILDREN];
  static int times[CHILDREN];
  int others = 0, once = 0, hold[2];
  char byte;
  EXPECT(pipe(hold) == 0);
  for (int i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    if (children[i] > 0) continue;
    close(hold[1]);
    _exit(children[i] == 0 && read(hold[0], &byte, 1) == 0 ? 0 : 1); /* until we have looked */
  }
  EXPECT_NUMBER(children_each(note, &(struct found){children, times, &others}), CHILDREN);
  close(hold[0]), close(hold[1]);
  for (int i = 0; i < CHILDREN; i++) once += times[i] == 1, waitpid(children[i], NULL, 0);
  EXPECT_NUMBER(once, CHILDREN);
  EXPECT_NUMBER(others, 0);
}
