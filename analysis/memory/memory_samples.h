// A curve of memory over time in bounded space: one sample after each change; once there are too many, every other one goes, the
// smaller of two neighbours, so that a peak stays.
//   · At most 2 * kMaxMemorySamples samples. One thread.
#pragma once

#include <utility>
#include <vector>

#include "base/types.h"

namespace gputrace {

constexpr std::size_t kMaxMemorySamples = 16384;

// `bytes`: the member by which a sample counts as large. `thinned` is set once samples have gone. A newer sample of the same instant
// takes the place of the older one.
template <typename Sample>
void add_memory_sample(std::vector<Sample>& samples, bool& thinned, const Sample& sample, u64 Sample::*bytes) {
  if (!samples.empty() && samples.back().at == sample.at) samples.pop_back();
  samples.push_back(sample);
  if (samples.size() < 2 * kMaxMemorySamples) return;
  std::vector<Sample> kept;
  kept.reserve(kMaxMemorySamples);
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2)
    kept.push_back(samples[i].*bytes > samples[i + 1].*bytes ? samples[i] : samples[i + 1]);
  samples = std::move(kept);
  thinned = true;
}

}  // namespace gputrace
