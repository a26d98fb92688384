// What of at::RecordFunction is read: PyTorch 2.1 … 2.15, by version and by how it keeps strings. Taken from the headers that its
// packages bring along; proven at the first operation by reads that cannot fault.
#pragma once

#include "base/types.h"

namespace gputrace {

inline constexpr u8 kBackwardScope = 1;  // at::RecordScope::BACKWARD_FUNCTION
// FUNCTION, BACKWARD_FUNCTION, TORCHSCRIPT_FUNCTION, USER_SCOPE: numbered alike in 2.1 … 2.15. Of each scope that is asked for PyTorch makes a list of callbacks
// anew, twice for each node of a backward pass (at::ThreadLocalStateGuard).
inline constexpr u8 kFollowedScopes[] = {0, kBackwardScope, 2, 7};
// Of a process's life; PyTorch numbers each that it meets.
inline constexpr u64 kMostThreads = u64{1} << 24;

struct TorchLayout {
  u8 scope;            // RecordScope, one byte
  u8 name;             // a schema's address, or a string
  u8 is_schema;        // which of them: one byte, 1 or 0
  u8 sequence;         // i64; -1: none
  u8 thread;           // u64: PyTorch's own number of the thread, from 1
  u16 forward_thread;  // u64: in the backward pass, of the thread that ran the forward operation; else 0
};

// As at::RecordFunctionCallback lies on the stack when it is passed by value.
struct TorchCallback {
  void* (*start)(void* context, const void* function);  // returns a std::unique_ptr by `context`
  void (*end)(const void* function, void* context);
  double probability;
  bool scopes[10];
  bool needs_inputs, needs_outputs, needs_ids;
};
static_assert(sizeof(TorchCallback) == 40);

struct Torch {
  const TorchLayout* layout = nullptr;  // nullptr: not to be read
  u64 (*add_callback)(TorchCallback) = nullptr;
  const char* (*name_of)(const void* function) = nullptr;
  u64 (*thread_now)() = nullptr;   // PyTorch's number of the calling thread
  u64 (*next_number)() = nullptr;  // of autograd's, in the calling thread; nullptr: not to be had
  const char* why = nullptr;       // why not; nullptr: all is well, or there is no PyTorch
  char version[32] = {};           // "2.15.0"; "": there is no PyTorch
};
// Cold: walks the loaded objects and reads a file beside PyTorch's library.
void find_torch(Torch& torch);

// Whether what a layout says of this object holds.
bool proves(const Torch& torch, const void* function);

}  // namespace gputrace
