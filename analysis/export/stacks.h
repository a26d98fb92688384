// What was spent from where, as stacks for flame graphs: process, the program's lines, operations of a framework, kernel. Memory grows
// with what is different, not with how often it happened.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/events/events.h"

namespace gputrace {

struct StackEntry {
  std::string name, file;  // file: empty: none
  u32 line = 0;            // 0: not known
  bool operator<(const StackEntry& other) const {
    return std::tie(name, file, line) < std::tie(other.name, other.file, other.line);
  }
};

// One measure over all stacks.
struct StackProfile {
  const char* name;
  const char* unit;                      // as speedscope has it: "nanoseconds", "bytes"
  std::map<std::vector<u32>, u64> sums;  // by stack, the outermost first: numbers of entries
};

class StackSums : public EventSink {
 public:
  // What a device did, the leaf being what it did; the rest are of the stacks alone.
  enum Which : unsigned { Device, Idle, Operations, Waits, Copied, Allocated, kProfiles };

  StackSums();

  void begin(const ExportProcess& process) override;
  void ran(const DeviceSlice& slice) override;
  void facts(const ProcessTrace& facts) override;
  void host(const HostSlice&) override {}

  const std::vector<StackEntry>& entries() const { return entries_; }
  const std::vector<StackProfile>& profiles() const { return profiles_; }

 private:
  u32 number_of(StackEntry entry);
  // Adds the frames of `innermost` and its callers, the outermost first.
  void add_chain(const SourceLines& lines, u32 innermost, std::vector<u32>& stack);
  std::vector<u32> stack_of(const SourceLines& lines, u32 origin);
  void add(Which which, const std::vector<u32>& stack, u64 amount);

  std::vector<StackEntry> entries_;
  std::map<StackEntry, u32> numbers_;
  std::vector<StackProfile> profiles_;
  u32 process_ = 0;
  std::unordered_map<const DeviceWork*, std::unordered_map<u32, u64>> device_;  // by work and origin, of this process
};

}  // namespace gputrace
