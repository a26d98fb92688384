// Self time from intervals: a thread's calls come in the order of their ends, so when a call comes, the calls nested in
// it have come already and are the newest ones that began after it.
//   · One instance per traced thread. Amortized O(1) a call.
//   · Memory: 16 bytes for each of the last kKeep calls that no other encloses; a call enclosing more than that (none
//     known: a runtime call makes tens of driver calls) would keep the time of the oldest as its own.
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"

namespace gputrace {

class CallNesting {
 public:
  static constexpr std::size_t kKeep = 64u << 10;

  // Returns the call's time without the calls nested in it.
  u64 self_time(Nanos begin, Nanos end) {
    const u64 duration = static_cast<u64>(end - begin);
    const bool encloses = !done_.empty() && done_.back().begin >= begin;
    const u64 self = encloses ? without_nested(begin, duration) : duration;
    if (done_.size() == done_.capacity()) [[unlikely]]
      make_room();
    done_.push_back({begin, duration});
    return self;
  }

 private:
  struct Done {
    Nanos begin;
    u64 duration;
  };

  [[gnu::noinline]] u64 without_nested(Nanos begin, u64 duration) {
    u64 nested = 0;
    while (!done_.empty() && done_.back().begin >= begin) {
      nested += done_.back().duration;
      done_.pop_back();
    }
    return duration > nested ? duration - nested : 0;
  }
  [[gnu::noinline]] void make_room() {
    if (done_.size() >= kKeep)
      done_.erase(done_.begin(), done_.begin() + kKeep / 2);
    else
      done_.reserve(std::clamp<std::size_t>(2 * done_.size(), 1, kKeep));
  }

  std::vector<Done> done_;
};

}  // namespace gputrace
