// Which of the host's streams a device operation may be from when nothing says it: those that were given an operation
// that looks like it. So the search does not go over all streams.
//   · Begun when it is asked for first; most traces never need it.
//   · One thread. Memory: some 60 bytes for each stream and each look of its operations.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/types.h"

namespace gputrace {

// What host and device both know of an operation, mixed into one word.
using OperationLook = u64;

class StreamCandidates {
 public:
  bool active() const { return active_; }
  void activate() { active_ = true; }

  void add(OperationLook look, u32 stream) {
    if (known_.insert(key(look, stream)).second) streams_[look].push_back(stream);
  }

  // Calls `visit(stream)` for each, until it returns Stop. Gone: it is no candidate until it is added again.
  enum class Visited { Next, Gone, Stop };
  template <typename Visit>
  void for_each(OperationLook look, Visit&& visit) {
    const auto list = streams_.find(look);
    if (list == streams_.end()) return;
    std::vector<u32>& streams = list->second;
    for (std::size_t i = 0; i < streams.size();) {
      const Visited visited = visit(streams[i]);
      if (visited == Visited::Stop) return;
      if (visited == Visited::Next) {
        ++i;
        continue;
      }
      known_.erase(key(look, streams[i]));
      streams[i] = streams.back();
      streams.pop_back();
    }
  }

 private:
  static u64 key(OperationLook look, u32 stream) { return look ^ (stream + 1ull) * 0x9e3779b97f4a7c15ull; }

  bool active_ = false;
  std::unordered_map<OperationLook, std::vector<u32>> streams_;
  std::unordered_set<u64> known_;
};

}  // namespace gputrace
