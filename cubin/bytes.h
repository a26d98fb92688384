#pragma once
// Bounds-checked reading of little-endian values out of untrusted bytes.
#include <cstring>
#include <string_view>
#include <type_traits>

#include "cubin/code_image.h"

namespace gputrace {

// The value at `offset`, or nullopt where it does not lie wholly inside.
template <typename T>
std::optional<T> read_at(ByteSpan bytes, std::size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// bytes[offset, offset + size), or nullopt where it does not lie wholly inside. 64-bit, so that sums cannot wrap.
inline std::optional<ByteSpan> slice(ByteSpan bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

// The NUL-ended string at `offset` of a string table; empty where it is not ended inside the table.
inline std::string_view string_at(ByteSpan table, std::size_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const void* end = std::memchr(begin, 0, table.size() - offset);
  if (end == nullptr) return {};
  return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
}

inline void explain(std::string* why, std::string_view text) {
  if (why != nullptr) *why = text;
}

}  // namespace gputrace
