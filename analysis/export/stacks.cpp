#include "analysis/export/stacks.h"

#include <algorithm>

namespace gputrace {
namespace {
constexpr std::size_t kDeepest = 512;  // frames of one stack
}

StackSums::StackSums()
    : profiles_{{"device time", "nanoseconds", {}},
                {"time that the device did nothing before", "nanoseconds", {}},
                {"host time of operations", "nanoseconds", {}},
                {"waits for the device", "nanoseconds", {}},
                {"bytes copied", "bytes", {}},
                {"bytes allocated", "bytes", {}}} {}

void StackSums::begin(const ExportProcess& process) {
  const std::string& path = process.who->executable;
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (!process.who->rank.empty()) name = "rank " + process.who->rank + " " + name;
  process_ = number_of({name.empty() ? "process" : name, "", 0});
  device_.clear();
}

void StackSums::ran(const DeviceSlice& slice) { device_[slice.work][slice.origin] += slice.length(); }

void StackSums::facts(const ProcessTrace& facts) {
  const SourceLines& lines = facts.lines;
  // In the order of their places in memory each export would be another file.
  std::map<std::string_view, std::map<u32, u64>> by_name;
  for (const auto& [work, sums] : device_) {
    for (const auto& [origin, nanos] : sums) by_name[work->name][origin] += nanos;
  }
  for (const auto& [name, sums] : by_name) {
    const u32 leaf = number_of({std::string(name), "", 0});
    for (const auto& [origin, nanos] : sums) {
      std::vector<u32> stack = stack_of(lines, origin);
      stack.push_back(leaf);
      add(Device, stack, nanos);
    }
  }
  device_.clear();
  for (u32 origin = 0; origin < lines.origins.size(); ++origin) {
    const StackTotals totals = origin < lines.totals.size() ? lines.totals[origin] : StackTotals{};
    const u64 idle = origin < lines.times.size() ? lines.times[origin].idle_ns : 0;
    const std::vector<u32> stack = stack_of(lines, origin);
    add(Idle, stack, idle);
    add(Waits, stack, totals.wait_ns);
    add(Copied, stack, totals.copy_bytes);
    add(Allocated, stack, totals.allocated_bytes);
  }
  for (u32 frame = 1; frame < std::min(lines.operations.size(), lines.frames.size()); ++frame) {
    if (lines.operations[frame].count == 0) continue;
    std::vector<u32> stack = {process_};
    add_chain(lines, frame, stack);
    add(Operations, stack, lines.operations[frame].self_ns);
  }
}

u32 StackSums::number_of(StackEntry entry) {
  const auto [known, made] = numbers_.emplace(entry, static_cast<u32>(entries_.size()));
  if (made) entries_.push_back(std::move(entry));
  return known->second;
}

void StackSums::add_chain(const SourceLines& lines, u32 innermost, std::vector<u32>& stack) {
  const std::size_t from = stack.size();
  for (u32 at = innermost; at != 0 && at < lines.frames.size() && stack.size() < kDeepest;
       at = lines.frames[at].parent) {
    const SourceFrame& frame = lines.frames[at];
    stack.push_back(number_of({frame.function.empty() ? "?" : frame.function, frame.file, frame.line}));
  }
  std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end());
}

std::vector<u32> StackSums::stack_of(const SourceLines& lines, u32 origin) {
  std::vector<u32> stack = {process_};
  if (origin >= lines.origins.size()) return stack;
  add_chain(lines, lines.origins[origin].frame, stack);
  add_chain(lines, lines.origins[origin].operation, stack);
  return stack;
}

void StackSums::add(Which which, const std::vector<u32>& stack, u64 amount) {
  if (amount) profiles_[which].sums[stack] += amount;
}

}  // namespace gputrace
