// Text ids of kernel names, by the address that CUPTI gives for them. The collector's thread only; memory of its own,
// bounded: what does not fit is defined again each time, which is correct and slower.
#pragma once

#include "base/types.h"

namespace gputrace {

class KernelNames {
 public:
  // 0: no name, or no room for the definition just now.
  u64 id_of(const char* name, u64 (*define)(const char* text, u64 length));

 private:
  static constexpr u32 kEntries = 1u << 13;
  static constexpr u32 kProbes = 8;
  static constexpr u64 kTextRoom = 4u << 20;
  struct Entry {
    const char* name;  // CUPTI's
    const char* copy;  // ours: an address may come back with another name
    u64 id;
  };
  bool prepare();

  Entry* entries_ = nullptr;
  char* texts_ = nullptr;
  u64 used_ = 0;
  bool failed_ = false;
};

}  // namespace gputrace
