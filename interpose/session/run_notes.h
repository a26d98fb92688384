// What `gputrace run` is told by the processes of its run, so that it can say why there is no trace: one line each, at the
// first CUDA call, into a file of `run`'s own that GPUTRACE_RUN_NOTES names. Nothing where the program was not started by `run`.
//   WORD \t PID \t EXECUTABLE \t WHAT \t FIX \n
#pragma once

namespace gputrace {

// A session has begun: a trace is to be expected.
void note_began();
// A CUDA call was made, and there is no session: `what` says why, `fix` what can be done (or "").
void note_untraced(const char* what, const char* fix);
// The program is about to put itself under a filter of system calls.
void note_sandboxed();

}  // namespace gputrace
