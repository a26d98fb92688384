// What of at::RecordFunction is read: PyTorch 2.1 … 2.15, by version and by how it keeps strings. Taken from the headers that its
// packages bring along; proven at the first operation by reads that cannot fault.
#pragma once

#include "base/types.h"

namespace gputrace {

struct TorchLayout {
  u8 scope;      // RecordScope, one byte
  u8 name;       // a schema's address, or a string
  u8 is_schema;  // which of them: one byte, 1 or 0
  u8 sequence;   // i64; -1: none
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
  const char* why = nullptr;  // why not; nullptr: all is well, or there is no PyTorch
  char version[32] = {};      // "2.15.0"; "": there is no PyTorch
};
// Cold: walks the loaded objects and reads a file beside PyTorch's library.
void find_torch(Torch& torch);

// Whether what a layout says of this object holds.
bool proves(const Torch& torch, const void* function);

}  // namespace gputrace
