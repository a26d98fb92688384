// gputrace-sidecar --segment-fd N [--process-fd M]         drains the ring of a process
// gputrace-sidecar --untraced PID EXECUTABLE WHAT FIX      one line in OUTPUT/untraced
// gputrace-sidecar --recover RING TRACE                    see recover.h; TRACE may be "": where the ring says
// The first two are started by libgputrace.so alone: own session, standard descriptors on /dev/null, signals blocked; the third by
// `gputrace recover`.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "base/own_stack.h"
#include "writer/recover.h"
#include "writer/sidecar.h"
#include "writer/untraced.h"

namespace {

int parse_number(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *text && !*end && value >= 0 && value < 1 << 30 ? static_cast<int>(value) : -1;
}

// One line for `gputrace recover`: WORD \t RECORDS \t TRACE or what is wrong. The exit code is 0 where the ring is gone.
int recover(const char* ring, const char* trace) {
  const gputrace::Recovered done = gputrace::recover_ring(ring, trace, gputrace::own_environment());
  const char* word = done.in_use           ? "in-use"
                     : !done.error.empty() ? "failed"
                     : done.was_complete   ? "complete"
                                           : "recovered";
  std::printf("%s\t%llu\t%s\n", word, static_cast<unsigned long long>(done.records),
              done.error.empty() ? done.trace.c_str() : done.error.c_str());
  return done.error.empty() ? 0 : 1;
}

int say_untraced(char** arguments) {
  const gputrace::Untraced untraced{parse_number(arguments[0]), arguments[1], arguments[2], arguments[3]};
  return gputrace::write_untraced(untraced, gputrace::own_environment()) ? 0 : 1;
}

int usage() {
  std::fprintf(
      stderr,
      "gputrace-sidecar: error: this program is started by libgputrace.so\n          fix: gputrace run -- CMD\n");
  return 2;
}

// Where memory is short we go first, never the program.
void be_first_to_go() {
  const gputrace::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score) (void)!::write(score.get(), "1000", 4);
}

// --segment-fd N [--process-fd M]
int follow(int count, char** arguments) {
  int segment = -1, process = -1;
  for (int i = 1; i + 1 < count; i += 2) {
    if (!std::strcmp(arguments[i], "--segment-fd"))
      segment = parse_number(arguments[i + 1]);
    else if (!std::strcmp(arguments[i], "--process-fd"))
      process = parse_number(arguments[i + 1]);
    else
      return usage();
  }
  if (segment < 0 || count % 2 == 0) return usage();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // nothing but SIGKILL and the end of the program ends us
  be_first_to_go();
  return gputrace::Sidecar(gputrace::Fd(segment), gputrace::Fd(process), gputrace::own_environment(), environ).run();
}

int main_of(int count, char** arguments) {
  const auto is = [&](const char* word, int words) { return count == words && !std::strcmp(arguments[1], word); };
  try {
    if (is("--version", 2)) {
      std::printf("gputrace-sidecar %s\n", GPUTRACE_VERSION);
      return 0;
    }
    if (is("--untraced", 6)) return say_untraced(arguments + 2);
    if (is("--recover", 4)) return recover(arguments[2], arguments[3]);
    return follow(count, arguments);
  } catch (const std::exception&) {
    return 1;  // the producer sees the heartbeat stop, and counts
  }
}

constexpr long kStack = 1 << 20;

struct Arguments {
  int count;
  char** words;
  int result;
};

}  // namespace

// On a stack of our own: the program's limit (ulimit -s), which is ours too, may be a few pages.
int main(int count, char** words) {
  Arguments arguments{count, words, 1};
  const auto go = [](void* data) {
    Arguments& all = *static_cast<Arguments*>(data);
    all.result = main_of(all.count, all.words);
  };
  if (!gputrace::call_on_own_stack(go, &arguments, kStack)) go(&arguments);
  return arguments.result;
}
