// Words of a C string that is there whole, for code that runs inside other people's processes and has no std::string.
#pragma once

#include <cstring>

#include "base/types.h"

namespace gputrace {

inline bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// Behind the last slash.
inline const char* file_name_of(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The digits at the begin of it; 0 without any.
inline u64 leading_decimal(const char* text) {
  u64 value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + static_cast<u64>(*text - '0');
  return value;
}

}  // namespace gputrace
