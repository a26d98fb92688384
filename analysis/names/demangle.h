// C++ and Rust names for people (of Rust's without the hash at their end). Names are untrusted input: a length cap, a cap on what comes out,
// and a stack of its own for long ones, so that no name can exhaust time, memory or the stack. What cannot be demangled within that is shown
// as it is. Names that come out much longer than they are (a substitution may stand for two of the one before) share
// kMaxGrowth bytes of the process; what comes after those are used up is shown as it is.
#pragma once

#include <string>

namespace gputrace {

inline constexpr std::size_t kMaxMangledBytes = 64u << 10;
inline constexpr std::size_t kMaxDemangledBytes = 256u << 10;
inline constexpr std::size_t kMaxGrowth = 1u << 20;

// Any thread. Returns `symbol` itself where it is no mangled name, or too long.
std::string demangle(const std::string& symbol);

}  // namespace gputrace
