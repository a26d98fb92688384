// gputrace-sidecar --segment-fd N [--process-fd M]
// gputrace-sidecar --untraced PID EXECUTABLE WHAT FIX      one line in OUTPUT/untraced
// Started by libgputrace.so alone: own session, standard descriptors on /dev/null, signals blocked.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "writer/sidecar.h"
#include "writer/untraced.h"

namespace {

int parse_number(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *text && !*end && value >= 0 && value < 1 << 30 ? static_cast<int>(value) : -1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 6 && !std::strcmp(arguments[1], "--untraced")) {
    try {
      const gputrace::Untraced untraced{parse_number(arguments[2]), arguments[3], arguments[4], arguments[5]};
      return gputrace::write_untraced(untraced, gputrace::own_environment()) ? 0 : 1;
    } catch (const std::exception&) {
      return 1;
    }
  }
  int segment = -1, process = -1;
  for (int i = 1; i < count; ++i) {
    if (!std::strcmp(arguments[i], "--segment-fd") && i + 1 < count) {
      segment = parse_number(arguments[++i]);
    } else if (!std::strcmp(arguments[i], "--process-fd") && i + 1 < count) {
      process = parse_number(arguments[++i]);
    } else if (!std::strcmp(arguments[i], "--version")) {
      std::printf("gputrace-sidecar %s\n", GPUTRACE_VERSION);
      return 0;
    } else {
      std::fprintf(
          stderr,
          "gputrace-sidecar: error: this program is started by libgputrace.so\n          fix: gputrace run -- CMD\n");
      return 2;
    }
  }
  if (segment < 0) {
    std::fprintf(
        stderr,
        "gputrace-sidecar: error: this program is started by libgputrace.so\n          fix: gputrace run -- CMD\n");
    return 2;
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // nothing but SIGKILL and the end of the program ends us
  try {
    return gputrace::Sidecar(gputrace::Fd(segment), gputrace::Fd(process), gputrace::own_environment(), environ).run();
  } catch (const std::exception&) {
    return 1;  // the producer sees the heartbeat stop, and counts
  }
}
