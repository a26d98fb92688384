// NVTX ranges of one process: pushed and popped on each thread, started and ended anywhere; counted by name and domain, and kept
// as ranges of time for whoever looks for steps in them.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "trace/reader.h"

namespace gputrace {

class NvtxRanges {
 public:
  NvtxRanges(const TextTable& texts, std::size_t threads, ProcessTrace& facts)
      : texts_(texts), facts_(facts), open_(threads) {}

  // Ranges that begin in the report's window count.
  void add(const Nvtx& value, u32 thread, Nanos at, bool counted);
  // Records of that thread were lost: what is open there may have been popped.
  void lost(u32 thread) { open_[thread].clear(); }
  // The number in ProcessTrace::nvtx of what the thread pushed last and has not popped; kNone: nothing that counts.
  u32 innermost(u32 thread) const { return open_[thread].empty() ? kNone : open_[thread].back().totals; }

 private:
  struct Open {
    Nanos begin = 0;
    u32 totals = kNone;  // in ProcessTrace::nvtx; kNone: outside of the window
    u32 range = kNone;   // in LoopLog::ranges
    u64 domain = 0;      // each has a stack of its own
    bool began_before = false;
  };
  Open begin(const Nvtx& value, u32 thread, Nanos at, bool counted, bool pushed);
  void end(const Open& open, Nanos at);
  u32 totals_of(const Nvtx& value);

  const TextTable& texts_;
  ProcessTrace& facts_;
  std::vector<std::vector<Open>> open_;        // by thread
  std::unordered_map<u64, Open> started_;      // by range id
  std::map<std::pair<u64, u64>, u32> totals_;  // by message and domain
  std::map<std::string, u32> of_programs_;     // XLA's, by their name without the program's number
};

}  // namespace gputrace
