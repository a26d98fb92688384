// The id of a text: a hash of its bytes, so that whoever knows a name knows its id too, in the traced process and
// outside of it.
#pragma once

#include "base/types.h"

namespace gputrace {

inline constexpr u64 kMaxTextLength = 64u << 10;  // longer texts are cut: the id is that of what is left

// Never 0.
inline u64 text_id(const char* text, u64 length) {
  u64 hash = 14695981039346656037ull;
  for (u64 i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211ull;
  hash ^= hash >> 32;
  return hash ? hash : 1;
}

}  // namespace gputrace
