// A hash for ids and handles that a file chose: without knowing this process's seed nobody can choose those that meet.
// For tables whose order nobody sees.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace gputrace {

u64 hash_seed();  // of this process

struct SeededHash {
  std::size_t operator()(u64 value) const {
    value = (value ^ seed) * 0xff51afd7ed558ccdull;
    value ^= value >> 32;
    value *= 0xc4ceb9fe1a85ec53ull ^ (seed | 1) << 1;
    return value ^ value >> 29;
  }
  u64 seed = hash_seed();
};

}  // namespace gputrace
