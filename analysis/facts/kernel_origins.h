// How often, and for how long, each kernel ran for calls of each origin: what an operation or a line had the device compute.
//   · Executions alone, without times: of what replays of graphs ran, for the origin of the call that captured it.
//   · One addition for each kernel that ran and whose call has a line or an operation; programs without either pay nothing.
//   · Memory: 32 bytes a pair, at most kMost pairs; what further ones come to is not told.
#pragma once

#include <utility>
#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

class KernelOrigins {
 public:
  static constexpr std::size_t kMost = 1u << 16;

  void add(u32 kernel, u32 origin, u64 nanos, u64 executions = 1) {
    if (slots_.empty()) slots_.resize(1024, kNone);
    std::size_t at = place_of(kernel, origin);
    if (slots_[at] == kNone) {
      if (pairs_.size() == kMost) return;
      if (2 * (pairs_.size() + 1) > slots_.size()) {
        grow();
        at = place_of(kernel, origin);
      }
      slots_[at] = static_cast<u32>(pairs_.size());
      pairs_.push_back({kernel, origin});
    }
    KernelOrigin& pair = pairs_[slots_[at]];
    pair.executions += executions;
    pair.device_ns += nanos;
  }
  std::vector<KernelOrigin> take() {
    slots_.clear();
    return std::move(pairs_);
  }

 private:
  // Where the pair is, or would be: the slots are a power of two, and at least half of them are free.
  std::size_t place_of(u32 kernel, u32 origin) const {
    const u64 mixed = (static_cast<u64>(kernel) << 32 | origin) * 0x9e3779b97f4a7c15u;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(mixed >> 40) & mask;
    while (slots_[at] != kNone && (pairs_[slots_[at]].kernel != kernel || pairs_[slots_[at]].origin != origin))
      at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(2 * slots_.size(), kNone);
    for (u32 i = 0; i < pairs_.size(); ++i) slots_[place_of(pairs_[i].kernel, pairs_[i].origin)] = i;
  }

  std::vector<u32> slots_;  // places in pairs_
  std::vector<KernelOrigin> pairs_;
};

}  // namespace gputrace
