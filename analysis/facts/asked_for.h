// What the process was asked to collect: GPUTRACE_COLLECT, resolved, as the trace has it.
#pragma once

#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// Whether a part ("api", "code", …) was asked for; nothing: the trace does not say (an older writer).
inline std::optional<bool> asked_for(const ProcessTrace& process, const std::string& part) {
  const auto collect = process.options.find("collect");
  if (collect == process.options.end() || collect->second.empty()) return std::nullopt;
  const std::string list = "," + collect->second + ",";
  return list.find("," + part + ",") != std::string::npos || list.find(",all,") != std::string::npos;
}

}  // namespace gputrace
