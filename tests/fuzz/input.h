// What the fuzzer gives, taken from its front.
#pragma once

#include <cstring>

#include "base/types.h"

struct Input {
  const gputrace::u8* at;
  std::size_t left;
  // False, and nothing taken: there is not as much left.
  bool take(void* to, std::size_t bytes) {
    if (left < bytes) return false;
    std::memcpy(to, at, bytes);
    at += bytes;
    left -= bytes;
    return true;
  }
};
