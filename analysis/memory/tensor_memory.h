// What a framework's allocator had given out at its peak, and what for.
//   · A piece's kind is told when all is known: from the operation in which it was allocated, from when it was given back, and
//     from the optimizer's steps between. What PyTorch calls things: allocated in Optimizer.step and alive after it: optimizer
//     state; in the backward pass and alive after the operation: gradients; anything that is gone before the outermost
//     operation that allocated it has ended: workspace, as is what a matrix product allocates beside its result (cuBLAS's
//     workspace stays with the handle). Else by the number of optimizer steps that it outlived: none:
//     activations; one: inputs where it came by a conversion (aten::to), else activations; more, or still alive: parameters,
//     where it was there before the first step was made, else persistent, as is what the first step keeps where later ones
//     keep more of the same operation (results that a list holds).
//     Without any optimizer step: alive at the end: persistent (weights, caches), else activations.
//   · Memory: O(live pieces) + O(optimizer steps) + at most 2 * kMaxMemorySamples samples a device.
#pragma once

#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/memory/pieces_at_peak.h"
#include "trace/record.h"

namespace gputrace {

class TensorLedger {
 public:
  explicit TensorLedger(ProcessTrace& facts) : facts_(facts) {}

  // `thread`: index of the one that allocates; `origin`: from where it made its last call.
  void changed(const TensorMemory& value, u32 thread, u32 origin, Nanos at);
  // An operation came to its end.
  void operation_ended(u32 frame, u32 thread, Nanos begin, Nanos end);
  // Tells the kinds of what lived at the peaks.
  void finish();

 private:
  static constexpr Nanos kAlive = kStillAllocated;
  struct Piece {
    u64 address = 0, bytes = 0;
    Nanos begin = 0, end = kAlive;
    u32 origin = 0, thread = 0;
    u32 ended = 0;          // outermost operations that the thread had ended when it was allocated
    bool is_brief = false;  // gone before the next one ended
    u32 before = 0;         // pieces that the same operation had been given
  };
  struct Device {
    u32 facts = 0;               // index in facts_.tensors
    PiecesAtPeak<Piece> pieces;  // by address
  };
  struct Thread {
    u32 ended = 0;                  // outermost operations that it has ended
    u32 operation = 0, pieces = 0;  // what it has allocated within the one that is under way
  };
  struct Step {
    Nanos begin, end;
  };
  // What the frames of an operation say.
  struct Place {
    bool known = false, in_optimizer = false, in_backward = false, in_conversion = false, is_product = false;
  };

  Device& device(i32 ordinal);
  u32 operation_of(u32 origin) const;
  const Place& place_of(u32 origin);
  TensorKind kind_of(const Piece& piece);
  bool is_outermost(u32 frame) const;
  Thread& thread_of(u32 thread) { return entry_at(threads_, thread); }

  ProcessTrace& facts_;
  std::unordered_map<i32, Device> devices_;
  std::vector<Thread> threads_;
  std::vector<Step> steps_;
  std::vector<Place> places_;  // by frame of an operation
};

}  // namespace gputrace
