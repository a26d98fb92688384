// How many operations of a stream had been launched and had not started, over time: how long each depth lasted, what
// launch calls cost that found it, and its course.
//   depth 0 │ 1 │ 2…3 │ 4…7 │ … │ 512…1023 │ 1024…2047 │ … │ 2^20 and more      (depth_class 0, 1, 2, …)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include "base/types.h"

namespace gputrace {

inline constexpr u32 kMostQueued = 1u << 20;  // deeper is counted as that
inline constexpr unsigned kDepthClasses = 22;
// A driver's queue holds about that many launches, then it blocks: HTA's gate.
inline constexpr u32 kQueueHolds = 1024;
inline unsigned depth_class(u32 depth) { return static_cast<unsigned>(std::bit_width(depth)); }
inline u32 depth_class_begin(unsigned number) { return number ? 1u << (number - 1) : 0; }

// At most kBins intervals of one width, which doubles as time goes on.
class DepthCourse {
 public:
  static constexpr std::size_t kBins = 128;
  struct Bin {
    u64 area = 0;  // depth x ns
    u32 deepest = 0;
  };

  // From where the one before it ended, or later.
  void add(u32 depth, Nanos from, Nanos to) {
    if (from >= newest_.begin && to <= newest_.end) [[likely]] {
      end_ = to;
      add_to(bins_[newest_.bin], depth, to - from);
      return;
    }
    add_across(depth, from, to);
  }
  u64 area() const {
    u64 sum = 0;
    for (const Bin& bin : bins_) sum += bin.area;
    return sum;
  }
  // Those that hold any time.
  std::size_t size() const { return bins_.empty() ? 0 : ((static_cast<u64>(end_ - begin_) - 1) >> shift_) + 1; }
  const Bin& bin(std::size_t number) const { return bins_[number]; }
  Nanos bin_begin(std::size_t number) const { return begin_ + static_cast<Nanos>(static_cast<u64>(number) << shift_); }
  Nanos bin_end(std::size_t number) const { return std::min(end_, bin_begin(number + 1)); }

 private:
  static void add_to(Bin& bin, u32 depth, Nanos length) {
    if (depth == 0) return;
    bin.area += static_cast<u64>(length) * depth;
    bin.deepest = std::max(bin.deepest, depth);
  }

  // Times of several bins, or of another one than the newest.
  [[gnu::noinline]] void add_across(u32 depth, Nanos from, Nanos to) {
    if (bins_.empty()) {
      begin_ = from;
      bins_.resize(kBins);
    }
    while (static_cast<u64>(to - begin_) > kBins << shift_) double_width();
    end_ = to;
    for (Nanos at = from; at < to;) {
      const std::size_t bin = static_cast<u64>(at - begin_) >> shift_;
      newest_ = {bin, bin_begin(bin), bin_begin(bin + 1)};
      const Nanos until = std::min(to, newest_.end);
      add_to(bins_[bin], depth, until - at);
      at = until;
    }
  }

  void double_width() {
    for (std::size_t i = 0; i < kBins / 2; ++i) {
      const Bin &first = bins_[2 * i], second = bins_[2 * i + 1];
      bins_[i] = {first.area + second.area, std::max(first.deepest, second.deepest)};
    }
    std::fill(bins_.begin() + kBins / 2, bins_.end(), Bin{});
    ++shift_;
  }

  struct Newest {  // the bin of the newest times
    std::size_t bin = 0;
    Nanos begin = 0, end = 0;  // equal: none yet
  };

  std::vector<Bin> bins_;
  Newest newest_;
  Nanos begin_ = 0, end_ = 0;
  unsigned shift_ = 10;  // width: 2^shift ns
};

// Of one stream, from the first launch to the last start. A launch counts from the begin of its call, and not before
// those that are ahead of it in the stream.
struct QueueDepth {
  std::array<u64, kDepthClasses> time_ns{};            // how long so many were waiting
  std::array<u64, kDepthClasses> calls{}, calls_ns{};  // launches that found so many waiting, host time in them
  u32 deepest = 0;                                     // just after a launch, itself included
  DepthCourse course;

  void lasted(u32 depth, Nanos from, Nanos to) {
    if (to <= from) return;
    time_ns[depth_class(depth)] += static_cast<u64>(to - from);
    course.add(depth, from, to);
  }
  void launched(u32 found, Nanos call_ns) {
    ++calls[depth_class(found)];
    calls_ns[depth_class(found)] += static_cast<u64>(call_ns);
  }
  // Sum of launch → start: over the span that is the mean depth.
  u64 waited_ns() const { return course.area(); }
  u64 span_ns() const { return time_from(0); }
  // Time at kQueueHolds and more.
  u64 full_ns() const { return time_from(depth_class(kQueueHolds)); }

 private:
  u64 time_from(unsigned number) const { return std::accumulate(time_ns.begin() + number, time_ns.end(), u64{0}); }
};

}  // namespace gputrace
