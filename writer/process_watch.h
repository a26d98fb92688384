// Whether the traced process still runs the program that made the segment, and whether it is still the user's whose sidecar this is.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/types.h"

namespace gputrace {

class ProcessWatch {
 public:
  enum class State { Running, Gone, Executed };

  // `pidfd` may be empty: then pid and start time are looked up in /proc. `segment`: the descriptor of the segment,
  // borrowed.
  ProcessWatch(Fd pidfd, i32 pid, u64 start_time, int segment);

  // Waits up to `timeout_ns` for the process to end. Never blocks longer; returns at once when it is gone.
  State wait(Nanos timeout_ns);
  // How a process that is gone has ended, as waitpid() says it. Until its parent has asked /proc shows it to those who may see: then wait() has
  // looked. Afterwards the kernel tells it (Linux 6.15), which may take until `deadline` (CLOCK_MONOTONIC).
  std::optional<int> status(Nanos deadline) const;
  // The user that the process has become for good: our own is none of its real, effective and saved ones any more. As /proc says it of
  // the process's first thread; empty where it does not.
  std::optional<u32> became() const;

 private:
  bool gone() const;
  State ended();
  std::optional<int> status_of_zombie() const;
  bool executed();
  std::string image() const;
  bool maps_segment() const;

  Fd pidfd_;
  i32 pid_;
  u64 start_time_;
  int segment_;
  Fd status_;                       // its /proc/PID/status
  std::string image_;               // what tells one program image of the process from the next; empty: not known
  bool images_look_alike_ = false;  // its addresses are not randomized: only its maps tell
  Nanos next_look_ = 0;
  std::optional<int> seen_status_;  // of a zombie, when its end was seen
};

}  // namespace gputrace
