// Lines between `gputrace run` and the sidecars of its run, in a file of `run`'s own (GPUTRACE_RUN_NOTES=/proc/PID/fd/N):
//   untraced \t PID \t EXECUTABLE \t WHAT \t FIX    from here (and from the library, interpose/session/run_notes.h): no trace of that process, and why
//   ended \t PID \t STATUS                          from `run`: how its child ended, as wait() says it
// Nothing where the program was not started by `run`, or it is gone, or not to be seen from here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/types.h"
#include "writer/host.h"

namespace gputrace {

class RunNotes {
 public:
  explicit RunNotes(const Environment& environment);

  void untraced(i32 pid, std::string_view executable, std::string_view what, std::string_view fix) const;
  // Whether `run` itself started this process: then it will say how it ended.
  bool started(i32 pid) const;
  // The wait status of a child of `run`, which may take until `deadline` (CLOCK_MONOTONIC) to say it.
  std::optional<int> status_of(i32 pid, Nanos deadline) const;

 private:
  Fd file_;
  i32 run_ = 0;  // its pid
};

}  // namespace gputrace
