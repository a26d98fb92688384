// Puts device operations in the order of their starts, as far as they come less than kKept operations late.
//   · Nothing leaves before kMost are there; then the older half goes, sorted. finish() gives the rest.
//   · Memory: 64 bytes an operation and 16 while sorting.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/timeline/operations.h"

namespace gputrace {

class ReorderWindow {
 public:
  static constexpr std::size_t kMost = 1u << 20;
  static constexpr std::size_t kKept = kMost / 2;

  explicit ReorderWindow(std::size_t most = kMost) : most_(most) {}

  template <typename Give>
  void add(const DeviceOperation& operation, Give&& give) {
    waiting_.push_back(operation);
    if (waiting_.size() >= most_) release(most_ / 2, give);
  }
  template <typename Give>
  void finish(Give&& give) {
    release(waiting_.size(), give);
  }

 private:
  struct Place {
    Nanos start;
    u32 index;
  };

  template <typename Give>
  void release(std::size_t count, Give& give) {
    const auto in_order = [](const auto& a, const auto& b) { return a.start < b.start; };
    if (!std::is_sorted(waiting_.begin(), waiting_.end(), in_order)) sort();
    for (std::size_t i = 0; i < count; ++i) give(waiting_[i]);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Stable: what starts together keeps the order in which it came.
  void sort() {
    places_.resize(waiting_.size());
    for (u32 i = 0; i < places_.size(); ++i) places_[i] = {waiting_[i].start, i};
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.start != b.start ? a.start < b.start : a.index < b.index;
    });
    sorted_.resize(waiting_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) sorted_[i] = waiting_[places_[i].index];
    waiting_.swap(sorted_);
  }

  const std::size_t most_;
  std::vector<DeviceOperation> waiting_, sorted_;
  std::vector<Place> places_;
};

}  // namespace gputrace
