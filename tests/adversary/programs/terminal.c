/* terminal: types into the caller's terminal, by every descriptor that may lead there, also with bits above the 32 that count. */
#include "answer.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void type_into(int fd, const char *word) {
  for (const char *at = word; *at; at++) answer("TIOCSTI", ioctl(fd, TIOCSTI, at));
  for (const char *at = word; *at; at++) answer("TIOCSTI-high", syscall(SYS_ioctl, fd, (uint64_t)TIOCSTI | 1ull << 40, at));
  struct { char subcode; char rest[15]; } paste = {.subcode = 3};
  answer("TIOCLINUX", ioctl(fd, TIOCLINUX, &paste));
  int discipline = 0;
  answer("TIOCSETD", ioctl(fd, TIOCSETD, &discipline));
}

int main(int count, char **words) {
  if (count != 2) return 2;
  for (int fd = 0; fd <= 2; fd++) type_into(fd, words[1]);
  int own = open("/dev/tty", O_RDWR | O_CLOEXEC);
  answer("tty", own);
  if (own >= 0) type_into(own, words[1]);
  return 0;
}
