// When a piece of memory that was allocated at a device's peak came and went.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace gputrace {

inline constexpr Nanos kStillAllocated = INT64_MAX;  // when the trace ended
inline constexpr std::size_t kMaxMemorySpans =
    2000;  // of one process on one device: the largest; a picture of more shows nothing

struct MemorySpan {
  const char* kind = "";  // of a tensor, or the pool; lives for ever
  u64 address = 0;        // 0: it has none of its own (arrays, physical memory that is mapped elsewhere)
  u64 bytes = 0;
  u32 origin = 0;  // in SourceLines::origins
  Nanos begin = 0, end = kStillAllocated;
};

// What lived at a peak, the largest first; of those beyond kMaxMemorySpans the sum.
struct MemorySpans {
  std::vector<MemorySpan> largest;
  u64 others = 0, other_bytes = 0;
};

}  // namespace gputrace
