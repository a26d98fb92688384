// Texts, and facts of functions, each asked for and recorded once. Definitions go to slot 0; when its lock is taken
// they are left for a later call. Nothing is asked while any stream captures.
#pragma once

#include "base/types.h"
#include "interpose/cuda_api.h"
#include "interpose/hot/traced.h"

namespace gputrace {

// Captures alive in this process, as far as begin and end were seen.
extern __attribute__((visibility("hidden"))) std::atomic<u32> open_captures;

// A new session, or a child of fork: everything is unknown again. False: no memory.
bool reset_facts();

// Writes a string definition under the lock of slot 0 (held by the caller) and returns its id; 0: nothing to say, or no
// room.
u64 define_text(const FinishedCall& call, const char* text, u64 length);

// Writes one frame of a stack under the lock of slot 0 (held by the caller) and returns the number that it got; 0: no room.
u32 define_frame(const FinishedCall& call, const StackFrame& record);
u32 define_frame(const FinishedCall& call, const NativeFrame& record);

// Holds the lock of slot 0, with more patience than a launch has: its holder may have lost its processor. For what is
// recorded once and not asked for again.
class Definitions {
 public:
  Definitions();
  ~Definitions() {
    if (held_) end_definition();
  }
  Definitions(const Definitions&) = delete;
  Definitions& operator=(const Definitions&) = delete;
  bool held() const { return held_; }

 private:
  bool held_ = false;
};

// A record on slot 0, whatever the window. Under its lock.
template <typename Record>
void define(const FinishedCall& call, const Record& record) {
  char* at = reserve_definition(sizeof(Record), call.end);
  if (!at) return;
  Record& out = *reinterpret_cast<Record*>(at);
  out = record;
  fill_header(out, call);
  commit_definition(at, sizeof(Record), call.generation);
}

// A sentence for the trace's reader. Takes the lock of slot 0; not written where it is not to be had.
void define_note(const FinishedCall& call, const char* text);

// ------------------------------------------------------------------ functions
// A handle was given out. owner: module, library, or the kernel that it came from. name: nullptr where only the owner
// knows.
void function_given(const FinishedCall& call, u64 function, FunctionKind kind, u64 owner, const char* name);
// Several handles from one call.
void functions_given(const FinishedCall& call, const u64* functions, u64 count, FunctionKind kind, u64 owner);
// A function that the driver names as that of a graph's node. A launch by its kernel (CUkernel) becomes a node of a function of the context that nobody was
// given (seen with CUDA 13.0); asked for its name, it is told as that kernel's, or as its module's where several kernels have the name.
void function_of_node(const FinishedCall& call, u64 function);
// The owner is gone: its handles may come back as other functions.
void functions_gone(u64 owner);

// What launches look into: the last described function of each place, so that a launch costs one load and compare.
inline constexpr u32 kFunctionEntries = 1u << 15;  // a place fits into 16 bits
extern __attribute__((visibility("hidden"))) u64* described_functions;

inline constexpr u64 kFunctionHash = 0x9e3779b97f4a7c15;
inline constexpr u32 kFunctionShift = 49;
GT_HOT u32 function_place(u64 function) { return static_cast<u32>((function * kFunctionHash) >> kFunctionShift); }
static_assert(kFunctionEntries == 1u << (64 - kFunctionShift));

GT_COLD void describe_function(FinishedCall call, u64 function);
// After every launch.
GT_HOT void function_launched(const FinishedCall& call, u64 function) {
  if (std::atomic_ref(described_functions[function_place(function)]).load(std::memory_order_relaxed) == function)
      [[likely]]
    return;
  describe_function(call, function);
}

// ------------------------------------------------------------------ captures
// Whether a stream captures: kLaunchCaptured, kLaunchCaptureUnknown or 0. Only asked while open_captures is not 0.
GT_COLD u32 capture_flags(CUstream stream, bool per_thread);

}  // namespace gputrace
