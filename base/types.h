// The few words that everything speaks. Fixed sizes, units in the name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gputrace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

using Nanos = i64;  // a time or a duration in nanoseconds; times are CLOCK_MONOTONIC of the traced host
using Bytes = u64;  // a size in bytes
using Ticks = u64;  // a stamp of the record clock: see base/clock.h; meaningless without the trace's anchors

// Rounds up to the next multiple of a power of two.
constexpr u64 align_up(u64 value, u64 alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace gputrace
