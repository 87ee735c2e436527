#include "lib/passed-signals.h"

void add_passed_signals(sigset_t *set) {
  static const int named[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT};
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) sigaddset(set, named[i]);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) sigaddset(set, signal);
}

int is_passed_signal(int signal) {
  sigset_t passed;
  sigemptyset(&passed);
  add_passed_signals(&passed);
  return sigismember(&passed, signal) == 1;
}
