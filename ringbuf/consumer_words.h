// Words of the other process, as the consumer reads them. Internal to ringbuf/consumer*.cpp.
#pragma once

#include "base/types.h"
#include "trace/record.h"

namespace gputrace {

inline constexpr u32 kProducerReasons =
    static_cast<u32>(DropReason::Overwritten);  // the reasons below are the producer's to count
inline constexpr u32 kOverwritten = static_cast<u32>(DropReason::Overwritten),
                     kLost = static_cast<u32>(DropReason::Lost);
inline constexpr u64 kSane = 1ull << 56;  // more records than that nobody writes: a counter beyond it is nonsense

inline u64 key_of(u32 slot, u32 incarnation) { return static_cast<u64>(slot) << 32 | incarnation; }

// Plain words: read once, whatever they are.
template <typename T>
T peek(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

}  // namespace gputrace
