// What was allocated for certain, where records were lost: a free may be among those, and an allocation too.
//   · What is allocated while no record is missing counts until a free of it is seen, or until records are missing again.
//   · What is allocated while records are missing counts for that instant.
//   · So the sums are lower bounds of what was in use. What was lost may have been an allocation of any size: from above only the
//     capacity of the device bounds them.
//   · Memory: 32 bytes a change, kMost of them; beyond, nothing is certain. Nothing where no record was lost.
#pragma once

#include <vector>

#include "analysis/facts/facts.h"

namespace gputrace {

class CertainMemory {
 public:
  static constexpr std::size_t kMost = 1u << 20;

  void begin() { active_ = true; }  // records were lost
  // In time order. `id`: of the block, used once.
  void allocated(Nanos at, u64 id, u64 bytes, u32 pool) { add({at, id, bytes, pool}); }
  void freed(Nanos at, u64 id) { add({at, id, 0, kNone}); }
  // No record is known to be missing outside of these.
  void lost(Nanos begin, Nanos end) { lost_.push_back({begin, end}); }
  // Sets the bounds of both, by the pools' devices.
  void finish(std::vector<MemoryPool>& pools, std::vector<DeviceMemory>& devices);

 private:
  struct Change {
    Nanos at = 0;
    u64 id = 0, bytes = 0;
    u32 pool = kNone;  // kNone: a free
  };
  struct Loss {
    Nanos begin = 0, end = 0;
  };
  void add(const Change& change);

  bool active_ = false;
  std::vector<Change> changes_;
  std::vector<Loss> lost_;
};

}  // namespace gputrace
