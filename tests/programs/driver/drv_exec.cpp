// drv_exec [times=N] [exit=E]: launches, then executes itself, N times; each life launches ten times. CUDA is in use
// when exec is called.
#include <unistd.h>

#include "tests/programs/drv_calls.h"

int main(int argc, char** argv) {
  const long times = option(argc, argv, "times", 2);
  const Calls calls = linked_calls();
  Work work;
  Session session(calls);
  session.round(&work, 10);
  std::printf("pid %d times left %ld launches %ld\n", static_cast<int>(getpid()), times, work.launches);
  std::fflush(stdout);
  if (times > 0) {
    char left[32];
    char code[32];
    std::snprintf(left, sizeof left, "times=%ld", times - 1);
    std::snprintf(code, sizeof code, "exit=%ld", option(argc, argv, "exit", 0));
    execl("/proc/self/exe", argv[0], left, code, nullptr);
    return 73;
  }
  return static_cast<int>(option(argc, argv, "exit", 0));
}
