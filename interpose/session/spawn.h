// Starting the sidecar without the host noticing.
//
//   host ── clone, exit signal 0 ──▶ middle ── clone ──▶ sidecar: own session, every signal blocked, two descriptors, exec
//                 ◀── reaped by us alone (__WALL) ──
//
// Both clones share memory and suspend their caller, like vfork: no page table of a 100 GB host is copied. The host
// sees no SIGCHLD and no child that wait() could return. A host that is a subreaper or PID 1 becomes the sidecar's parent:
// children.h hides it.
#pragma once

#include "base/types.h"

namespace gputrace {

struct SidecarLaunch {
  const char* path;
  const char* const* arguments;  // ends with nullptr
  int segment_fd;                // -1: none; 3 in the sidecar
  int process_fd;                // -1: none; 4 in the sidecar
  char* const* environment;
};

// Returns 0 once the program runs, else an errno: it could not be started, nothing is left behind. No allocation from
// the host's heap.
int start_sidecar(const SidecarLaunch& launch);

}  // namespace gputrace
