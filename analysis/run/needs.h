// What a section or a finding needs that a trace may lack, and why it is not there: the one place where `not_collected`
// gets its reasons from.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "analysis/facts/facts.h"

namespace gputrace {

// A need is met where any process of the run has it.
enum class Need { Calls, Device, Code, Libraries, Environment, Lines, Operations, Ranges, Files, Waits };
using Needs = std::initializer_list<Need>;  // the order in which they are looked at: the first that is not met is named

// The part of GPUTRACE_COLLECT that a need stands for: "api", "device".
const char* part_of(Need need);

// Why the first of the needs that are not met is not; nothing: all are met.
std::optional<std::string> why_not_met(Needs needs, const LoadedRun& run);

// Why no kernel's code is known, in a sentence without a full stop; empty: some is.
std::string why_no_code(const LoadedRun& run);

}  // namespace gputrace
