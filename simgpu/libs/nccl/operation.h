// One operation of a communicator as it was asked for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/libs/nccl/reduce.h"
#include "simgpu/libs/nccl/types.h"

namespace simlibs {

enum class Kind : uint8_t { AllReduce = 1, Broadcast, Reduce, AllGather, ReduceScatter, Send, Receive };

struct Operation {
  Kind kind = Kind::AllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // as in the call
  ncclDataType_t type = ncclFloat32;
  Reduction reduction;
  int root = 0;  // or the peer

  bool to_one_peer() const { return kind == Kind::Send || kind == Kind::Receive; }
  size_t count_bytes() const { return count * size_of(type); }
  // What each rank puts in, and the ring's b (cost.h).
  size_t own_bytes(int ranks) const {
    return kind == Kind::ReduceScatter ? count_bytes() * static_cast<size_t>(ranks) : count_bytes();
  }
  size_t all_bytes(int ranks) const {
    const bool each = kind == Kind::ReduceScatter || kind == Kind::AllGather;
    return each ? count_bytes() * static_cast<size_t>(ranks) : count_bytes();
  }
  // The same on all ranks that do the same.
  uint64_t what() const {
    return static_cast<uint64_t>(kind) | static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(reduction.op) << 16 |
           static_cast<uint64_t>(root) << 32;
  }
};

}  // namespace simlibs
