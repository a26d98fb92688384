// Source lines and operations of frameworks: the stacks from which calls were made, as trees of frames, and what the calls of
// each came to.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gputrace {

// A process numbers fewer stacks than this; what claims more is not believed.
inline constexpr u32 kMostStackFrames = 1u << 17;
// ... and tells at most 250 frames of a stack (the sampler), 192 (the library), and operations within some tens of others: what lies
// deeper is not believed to lie there, since some tables are made by going up from each frame.
inline constexpr u32 kDeepestFrame = 256;

// A frame under its caller's: a line of source, or an operation of a framework (then it has no file). Index 0: none.
struct SourceFrame {
  std::string function, file;
  u32 parent = 0;  // index of the caller; 0: none is known
  u32 line = 0;    // 0: not known
  u16 depth = 0;   // at most so many frames lie from the outermost one to this one; 0: no other frame named it yet
  bool told = false;
  bool native = false;   // of no interpreter; then `function` is "+0x…" where it is not known
  bool xla = false;      // an operation or a module of XLA's
  bool library = false;  // a native one of the system's, CUDA's, a vendor's or an installed package's objects
  // Where in `file` its name within a folder of packages begins, of those that the path alone does not tell; 0: it does.
  u16 package = 0;
};

// Where native frames lie.
struct NativeObject {
  std::string path, build_id;
};
struct NativeLine {
  u32 frame = 0, object = 0;  // places in SourceLines
  u64 offset = 0;             // of the call, from where the object would lie at address 0
};
inline constexpr u32 kMostNativeObjects = 1u << 14;

// From where calls are made: a line, and an operation of a framework that is under way. Each is the number of its innermost
// frame; 0: none that is known.
struct CallOrigin {
  u32 frame = 0;
  u32 operation = 0;
};
inline constexpr u32 kMostOrigins = 1u << 20;  // of a process; what comes from further ones counts as not known

// What the calls of one origin came to.
struct StackTotals {
  u64 calls = 0;     // driver calls that launch, copy, set, wait, allocate or free
  u64 launches = 0;  // plain and graph launches that succeeded, outside captures
  u64 wait_ns = 0;
  u64 copy_bytes = 0;
  u64 allocated_bytes = 0;
};

// How much of something the calls of each origin have. Of so many origins; what others have is not told.
struct OriginAmounts {
  static constexpr std::size_t kMost = 4096;
  std::vector<std::pair<u32, u64>> of;  // by origin
  std::size_t last = 0;                 // place of the newest one: most often the next one's too

  void add(u32 origin, u64 amount) {
    if (last >= of.size() || of[last].first != origin) {
      auto at = std::lower_bound(of.begin(), of.end(), std::pair{origin, u64{0}});
      if (at == of.end() || at->first != origin) {
        if (of.size() == kMost) return;
        at = of.insert(at, {origin, 0});
      }
      last = static_cast<std::size_t>(at - of.begin());
    }
    of[last].second += amount;
  }
};

// The device's side: of the operations that were joined to those calls.
struct StackDeviceTimes {
  u64 device_ns = 0;  // their durations
  u64 idle_ns = 0;    // of the device, before those that ended an idle gap
  u64 host_ns = 0;    // of it: the thread was in no CUDA call
  u64 launch_ns =
      0;  // of it: the thread was in launch calls, or on its way from one to the next (IdleGap::between_launches)
};

// What a kernel came to for the calls of one origin.
struct KernelOrigin {
  u32 kernel = 0;  // place in ProcessTrace::kernels
  u32 origin = 0;  // never 0
  u64 executions = 0;
  u64 device_ns = 0;
};

// What hosts did in the longest pause of each idle gap, by the two calls between which it lay. Of so many pairs of lines; what
// others come to is not told.
struct PausesBetween {
  static constexpr std::size_t kMost = 4096;
  std::unordered_map<u64, u64> of;  // ns by pair()

  static u64 pair(u32 after, u32 before) { return static_cast<u64>(after) << 32 | before; }
  void add(u32 after, u32 before, u64 length) {
    const u64 key = pair(after, before);
    const auto known = of.find(key);
    if (known != of.end())
      known->second += length;
    else if (of.size() < kMost)
      of.emplace(key, length);
  }
};

// How often an operation of a framework ran under the same others, and how long on the host.
struct OperationTotals {
  u64 count = 0;
  u64 total_ns = 0;
  u64 self_ns = 0;  // without the operations within it
};

struct SourceLines {
  std::vector<SourceFrame> frames;          // by the id of their StackFrame
  std::vector<OperationTotals> operations;  // by the same number; may be shorter
  std::vector<CallOrigin> origins{{}};      // the first: nothing is known
  std::vector<StackTotals> totals;          // by the number of their origin; may be shorter
  std::vector<StackDeviceTimes> times;      // likewise
  std::vector<KernelOrigin> kernels;        // of executions that were joined to a call with an origin
  // What replays of graphs ran, by the origin that captured it: nodes × replays. Without times: those that are known, because
  // the nodes had device records, are in `kernels` and `times` under the same origin.
  std::vector<KernelOrigin> replayed;
  PausesBetween pauses;  // by the numbers of their origins
  std::vector<NativeObject> objects;
  std::vector<NativeLine> native;  // the native ones of `frames`
  u64 unnamed = 0;                 // of them: no function is known
};

// Whether it is a function by which a model is written to a file, whatever program calls it.
inline bool saves_model(const SourceFrame& frame) {
  struct Saver {
    std::string_view function, file;
  };
  static constexpr Saver kSavers[] = {
      {"save", "torch/serialization.py"},
      {"save", "torch/distributed/checkpoint/state_dict_saver.py"},
      {"async_save", "torch/distributed/checkpoint/state_dict_saver.py"},
      {"save_file", "safetensors/torch.py"},
      {"save_file", "safetensors/numpy.py"},
      {"save_file", "safetensors/flax.py"},
      {"save_model", "keras/src/saving/saving_api.py"},
      {"save_weights", "keras/src/saving/saving_api.py"},
      {"save_checkpoint", "flax/training/checkpoints.py"},
      {"save", "orbax/checkpoint/_src/checkpointers/checkpointer.py"},
      {"save", "orbax/checkpoint/_src/checkpointers/async_checkpointer.py"},
  };
  const std::string_view name = std::string_view(frame.function).substr(frame.function.rfind('.') + 1);
  for (const Saver& saver : kSavers) {
    if (name == saver.function && frame.file.ends_with(saver.file)) return true;
  }
  return false;
}

// The entry `number` of one of them, made where it is not there yet.
template <typename Entry>
[[gnu::always_inline]] inline Entry& entry_at(std::vector<Entry>& entries, u32 number) {
  if (number >= entries.size()) [[unlikely]]
    entries.resize(number + 1u);
  return entries[number];
}

// The frame of that number, told for the first time, under its caller; nullptr: it was told before. A caller may be told later, by
// another thread: it is then taken to lie half as deep as may be, and no deeper when it is.
inline SourceFrame* new_frame(std::vector<SourceFrame>& frames, u32 number, u32 caller) {
  SourceFrame& frame = entry_at(frames, number);
  if (frame.told) return nullptr;
  frame.told = true;
  const bool may_lie_deeper = frame.depth == 0;
  if (may_lie_deeper) frame.depth = 1;
  if (caller == 0 || caller >= number) return &frame;  // callers are numbered first
  u16& above = frames[caller].depth;
  if (above == 0) above = kDeepestFrame / 2;
  if (above + 1u > (may_lie_deeper ? kDeepestFrame : frame.depth)) return &frame;
  if (may_lie_deeper) frame.depth = static_cast<u16>(above + 1);
  frame.parent = caller;
  return &frame;
}

}  // namespace gputrace
