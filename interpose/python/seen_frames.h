// The frames of a thread as they are read at a call: three words each, enough to tell whether a frame was seen before.
// What they mean (names, files, lines) is written down once, by frame_table.h.
#pragma once

#include "base/types.h"
#include "frames/python_layout.h"

namespace gputrace {

inline constexpr u32 kMaxFrames = 128;  // innermost ones; what is above them is not told

struct SeenFrame {
  u64 code;
  u64 instruction;  // index or address, doubled; + 1 where it runs as a generator
  u64 sign;         // what the code is: tells a new code object at an old one's address

  // One that no interpreter runs: a return address, and how often objects were unloaded until then.
  static constexpr u64 kNative = ~0ull;
  static SeenFrame native(u64 address, u64 unloaded) { return {address, kNative, unloaded}; }
  bool is_native() const { return instruction == kNative; }
  bool operator==(const SeenFrame& other) const = default;
};

// Hot. The frames of the calling thread, innermost first, into kMaxFrames places; returns how many. `thread`: its
// PyThreadState. The layout has been proven: reads are plain ones. `known`: so many of `frames` were read a moment ago,
// since when no code object can have taken another one's place.
u32 read_frames(const PythonLayout& layout, u64 thread, SeenFrame* frames, u32 known);

}  // namespace gputrace
