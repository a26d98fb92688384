// The frames of samples as records: each StackFrame and each text once, numbered apart from those of the traced process.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "base/types.h"
#include "frames/python_code.h"
#include "writer/sample/python_frames.h"
#include "writer/trace_sink.h"

namespace gputrace {

class FrameRecords {
 public:
  explicit FrameRecords(TraceSink& sink) : sink_(sink) {}

  // The StackFrame of the innermost of `frames` (outermost first), written down where it is new; 0: there is none. Where there are
  // too many, that of the innermost one that was written.
  u32 number(const std::vector<PythonFrames::Frame>& frames, Ticks now);

 private:
  static constexpr u32 kMost = 1u << 16;
  u64 text(const std::string& text, Ticks now);

  TraceSink& sink_;
  std::map<std::tuple<u32, u32, u64, u64>, u32> numbers_;  // by parent, line, function and file
  std::unordered_set<u64> texts_;
};

}  // namespace gputrace
