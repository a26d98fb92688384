// What device operations are, interned: kernels by name and dimensions, copies and memsets by kind and memory. An
// operation then carries one number. Each shape remembers where its facts are, so that a look-up by name is made once.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/gaps/operations.h"
#include "trace/record.h"
#include "trace/text_table.h"

namespace gputrace {

struct DeviceShape {
  OperationKind kind = OperationKind::Kernel;
  bool collective = false;
  // kernels
  u64 name = 0;  // id of its text
  std::string_view symbol;
  u32 grid[3] = {}, block[3] = {}, cluster[3] = {};
  u32 dynamic_shared = 0;
  u32 static_shared = 0, local_bytes = 0, registers = 0;  // told once
  // copies and memsets
  TransferKind transfer = TransferKind::Unknown;
  HostMemory memory = HostMemory::Unknown;
  bool asynchronous = false;
  // both
  i32 device = -1;
  u32 target = kNone;         // the facts of the call that it was joined to last
  u32 graph_target = kNone;   // the facts where it is a graph's node or was not joined
  u32 graph_context = kNone;  // ... in that context
};

class DeviceShapes {
 public:
  explicit DeviceShapes(const TextTable& texts) : texts_(texts) {}

  u32 of(const DeviceKernel& record);
  u32 of(const DeviceCopy& record);
  u32 of(const DeviceMemset& record);
  u32 of_graph(i32 device);

  DeviceShape& operator[](u32 index) { return shapes_[index]; }
  const DeviceShape& operator[](u32 index) const { return shapes_[index]; }

 private:
  struct Key {
    u64 words[6] = {};
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  // The shape of that key; `fresh` where it has to be filled in.
  u32 look_up(const DeviceKernel& record);
  DeviceShape& intern(const Key& key, bool& fresh);

  const TextTable& texts_;
  std::vector<DeviceShape> shapes_;
  std::unordered_map<Key, u32, Hash> known_;
  struct RecentKernel {
    u64 words[6] = {};  // as they lie in the record
    u32 shape = kNone;
  };
  std::array<RecentKernel, 256> recent_;  // by a cheap hash
  Key newest_;                            // that was looked up; of last_
  u32 last_ = kNone;
};

// A kernel of a communication library, by its symbol.
bool is_collective_kernel(std::string_view symbol);

}  // namespace gputrace
