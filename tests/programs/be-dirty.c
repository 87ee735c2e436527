/* be-dirty PROGRAM [WORD...]: the worst of callers. Every signal is ignored and blocked, the mask is 0777, descriptors 9 and 1000 are open. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
  /* The kernel's own calls and structures: the C library leaves out the signals that its threads use. */
  static const uintptr_t ignore[4] = {(uintptr_t)SIG_IGN};
  static const uint64_t all = ~0ull;
  if (count < 2) return 2;
  for (int signal = 1; signal < NSIG; signal++) syscall(SYS_rt_sigaction, signal, ignore, NULL, sizeof all);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
  umask(0777);
  int leak = open("/", O_RDONLY | O_DIRECTORY);
  dup2(leak, 9), dup2(leak, 1000);
  execv(words[1], words + 1);
  fprintf(stderr, "%s: %s\n", words[1], strerror(errno));
  return 125;
}
