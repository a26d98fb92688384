// Devices across processes: what one process calls device 0 may be another's device 3 (CUDA_VISIBLE_DEVICES).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/table/table.h"

namespace gputrace {

// Numbers every (host, UUID) once. While no two different devices claim one ordinal, the numbers are the ordinals.
class DeviceMap {
 public:
  struct Entry {
    i64 number = 0;
    std::string host;
    Device device;
  };
  explicit DeviceMap(const LoadedRun& run);

  // null where the ordinal is not known.
  Value number(std::size_t process, i32 ordinal) const;
  const std::vector<Entry>& entries() const { return entries_; }
  // nullptr where no facts are known.
  static const Device* facts(const ProcessTrace& process, i32 ordinal);

 private:
  std::vector<Entry> entries_;
  std::map<std::pair<std::size_t, i32>, std::size_t> by_ordinal_;
};

// By row of the process's library calls: the device that its kernels ran on; nullptr: none, several, or not known.
std::vector<const Device*> devices_of_rows(const ProcessTrace& process);

}  // namespace gputrace
