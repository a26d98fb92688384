#include "analysis/run/needs.h"

#include <algorithm>

#include "analysis/facts/asked_for.h"
#include "analysis/run/device_time.h"

namespace gputrace {
namespace {

bool asked_of_any(const LoadedRun& run, u32 part, bool if_not_said) {
  return std::any_of(run.processes.begin(), run.processes.end(),
                     [&](const ProcessTrace& process) { return asked_for(process, part).value_or(if_not_said); });
}

std::string why_no_calls(const LoadedRun& run) {
  return asked_of_any(run, collect::kApi, true) ? "" : "calls were not collected (GPUTRACE_COLLECT without api)";
}

std::string why_no_device(const LoadedRun& run) {
  return device_collected(run) ? "" : "needs device timing: " + why_no_device_times(run);
}

// Collected code that shows nothing is an answer: only where nobody asked for it is the need not met.
std::string why_code_not_asked(const LoadedRun& run) {
  return asked_of_any(run, collect::kCode, false) ? ""
                                                  : "machine code was not collected (GPUTRACE_COLLECT without code)";
}

std::string why_no_libraries(const LoadedRun& run) {
  const bool collected = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const ProcessTrace& process) { return process.library.collected; });
  return collected ? "" : "calls of vendor libraries were not collected (GPUTRACE_COLLECT without libs)";
}

// Of what a process may have and may not: its own reason, else `none` where it was asked for; of several the last one's.
std::string why_absent(const LoadedRun& run, const char* name, u32 part, const char* none) {
  std::string why = std::string("not collected (GPUTRACE_COLLECT without ") + name + ")";
  for (const ProcessTrace& process : run.processes) {
    const auto reason = std::find_if(process.not_collected.begin(), process.not_collected.end(),
                                     [&](const auto& entry) { return entry.first == name; });
    if (reason != process.not_collected.end()) {
      why = reason->second;
    } else if (asked_for(process, part).value_or(false)) {
      why = none;
    }
  }
  return why;
}

std::string why_no_lines(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    const std::vector<SourceFrame>& frames = process.lines.frames;
    if (std::any_of(frames.begin(), frames.end(), [](const SourceFrame& frame) { return !frame.file.empty(); }))
      return "";
  }
  return why_absent(run, "python", collect::kPython, "no call was made from a Python function");
}

std::string why_no_operations(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    if (!process.lines.operations.empty()) return "";
  }
  return why_absent(run, "ops", collect::kOps, "no operation ran after the first CUDA call");
}

std::string why_no_ranges(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    if (!process.nvtx.empty()) return "";
  }
  return why_absent(run, "nvtx", collect::kNvtx, "");
}

// Where it was collected in any process nothing is missing, though nothing may have been called.
std::string why_not_counted(const LoadedRun& run, const char* name, u32 part) {
  for (const ProcessTrace& process : run.processes) {
    const bool refused = std::any_of(process.not_collected.begin(), process.not_collected.end(),
                                     [&](const auto& entry) { return entry.first == name; });
    if (!refused && asked_for(process, part).value_or(false)) return "";
  }
  return why_absent(run, name, part, "");
}

std::string why_no_files(const LoadedRun& run) { return why_not_counted(run, "io", collect::kIo); }
std::string why_no_waits(const LoadedRun& run) { return why_not_counted(run, "waits", collect::kWaits); }

struct NeedEntry {
  const char* part;
  std::string (*why_not_met)(const LoadedRun& run);  // empty: it is met
};

const NeedEntry& entry_of(Need need) {
  static constexpr NeedEntry kEntries[] = {{"api", why_no_calls},
                                           {"device", why_no_device},
                                           {"code", why_code_not_asked},
                                           {"libs", why_no_libraries},
                                           {"environment", why_no_environment},
                                           {"python", why_no_lines},
                                           {"ops", why_no_operations},
                                           {"nvtx", why_no_ranges},
                                           {"io", why_no_files},
                                           {"waits", why_no_waits}};
  return kEntries[static_cast<unsigned>(need)];
}

}  // namespace

const char* part_of(Need need) { return entry_of(need).part; }

std::optional<std::string> why_not_met(Needs needs, const LoadedRun& run) {
  for (const Need need : needs) {
    std::string why = entry_of(need).why_not_met(run);
    if (!why.empty()) return why;
  }
  return std::nullopt;
}

std::string why_no_code(const LoadedRun& run) {
  for (const ProcessTrace& process : run.processes) {
    for (const Function& function : process.functions) {
      if (!function.code.empty()) return "";
    }
  }
  const std::string why = why_code_not_asked(run);
  return why.empty() ? "no machine code of a launched kernel was read" : why;
}

}  // namespace gputrace
