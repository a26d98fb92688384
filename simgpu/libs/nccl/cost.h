// How long a kernel of a ring takes once all ranks have come to it. n ranks, b bytes in all, w the bandwidth of a link (the
// simulated copy bandwidth), h = 1 us a hop:
//   all-reduce 2(n−1)/n · b ÷ w + 2(n−1) h · all-gather, reduce-scatter (n−1)/n · b ÷ w + (n−1) h
//   broadcast, reduce b ÷ w + (n−1) h · send and receive: the larger of what leaves and what comes ÷ w + h
// and 2 us to start. b: of an all-gather what each rank has in the end, of a reduce-scatter what each has at the begin.
#pragma once

#include <cstdint>

#include "simgpu/libs/nccl/operation.h"

namespace simlibs {

inline constexpr uint64_t kKernelStart = 2'000, kHop = 1'000;

inline uint64_t transfer_time(double bytes, uint64_t bytes_per_second) {
  return bytes_per_second == 0 ? 0 : static_cast<uint64_t>(bytes * 1e9 / static_cast<double>(bytes_per_second));
}

inline uint64_t ring_time(Kind kind, uint64_t bytes, int ranks, uint64_t bytes_per_second) {
  const uint64_t hops = static_cast<uint64_t>(ranks) - 1;
  const double part = static_cast<double>(hops) / ranks * static_cast<double>(bytes);
  switch (kind) {
    case Kind::AllReduce:
      return transfer_time(2 * part, bytes_per_second) + 2 * hops * kHop;
    case Kind::AllGather:
    case Kind::ReduceScatter:
      return transfer_time(part, bytes_per_second) + hops * kHop;
    default:
      return transfer_time(hops == 0 ? 0 : static_cast<double>(bytes), bytes_per_second) + hops * kHop;
  }
}

}  // namespace simlibs
