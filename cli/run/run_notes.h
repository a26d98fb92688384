// What the processes of a run say to `run`: lines in memory of its own, which they open as /proc/PID/fd/N.
//   began      PID EXECUTABLE                a session: a trace is to be expected       (interpose/session/run_notes.h)
//   untraced   PID EXECUTABLE WHAT FIX       a CUDA call, and no trace                  (there, and writer/run_notes.h)
//   sandboxed  PID EXECUTABLE                it put itself under a filter of system calls
//   ended      PID STATUS                    from `run`, for the sidecar of its child
// Processes that cannot see that file (another user, another PID namespace) say nothing.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/types.h"

namespace gputrace {

struct RunNote {
  std::string word;
  i32 pid = 0;
  std::string executable, what, fix;
};

class RunNotes {
 public:
  RunNotes();

  // For GPUTRACE_RUN_NOTES; empty: there is no such file.
  const std::string& path() const { return path_; }
  // A child of ours ended, with this status of wait().
  void ended(i32 pid, int status) const;
  // What was said so far. At most some thousand lines.
  std::vector<RunNote> read() const;

 private:
  Fd file_;
  std::string path_;
};

}  // namespace gputrace
