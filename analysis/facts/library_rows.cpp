#include "analysis/facts/library_rows.h"

#include <algorithm>

namespace gputrace {

std::span<const LibraryUse> library_uses_of_kernel(const ProcessTrace& process, u32 kernel) {
  const auto& uses = process.library.uses;
  const auto first = std::lower_bound(uses.begin(), uses.end(), kernel,
                                      [](const LibraryUse& use, u32 wanted) { return use.kernel < wanted; });
  auto last = first;
  while (last != uses.end() && last->kernel == kernel) ++last;
  return {first, last};
}

const std::string& library_call_name(const ProcessTrace& process, const LibraryRow& row) {
  static const std::string kUnknown = "?";
  for (const CallFacts& call : process.calls) {
    if (call.id == row.call) return call.name;
  }
  return kUnknown;
}

bool device_time_of(const LibraryRow& row, u64& nanos) {
  const u64 executed = row.calls - std::min(row.calls, row.captured_calls);
  const bool shared = row.timed_calls > 0 || (row.shape.kind == LibraryKind::Collective && row.kernels == 0);
  const bool whole = shared ? row.timed_calls == executed : row.kernels > 0 && row.timed_kernels == row.kernels;
  if (executed == 0 || !whole) return false;
  nanos = row.device_ns;
  return true;
}

}  // namespace gputrace
