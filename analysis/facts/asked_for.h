// What the process was asked to collect: GPUTRACE_COLLECT, resolved, as the trace has it.
#pragma once

#include <optional>

#include "analysis/facts/facts.h"
#include "base/collect_parts.h"

namespace gputrace {

// Whether a part (collect::kCode, …) was asked for; nothing: the trace does not say (an older writer).
inline std::optional<bool> asked_for(const ProcessTrace& process, u32 part) {
  const auto list = process.options.find("collect");
  if (list == process.options.end() || list->second.empty()) return std::nullopt;
  return (collect::parts_in_effect(list->second.data(), list->second.size()) & part) != 0;
}

}  // namespace gputrace
