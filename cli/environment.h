// The variables that make a program traced: for `run`, which sets them, and `env`, which prints them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/places.h"

namespace gputrace {

class OptionParser;

std::string variable(const char* name);  // of our own environment; empty: not set

struct TraceOptions {
  std::string output, duration, delay, capture, collect;
  std::string simgpu;  // empty: no; "auto", or the CUDA major
};

// A sentence on each variable that begins like ours and is none: nothing would come of it.
std::vector<std::string> unknown_variables();

void add_trace_options(OptionParser& parser, TraceOptions& options);
void add_simgpu_option(OptionParser& parser, TraceOptions& options);  // one of them

// What is wrong with the values, in one line; nothing: all are good.
std::optional<std::string> check_trace_options(const TraceOptions& options, const Places& places);

using Variables = std::vector<std::pair<std::string, std::string>>;
// `output` as it shall stand in GPUTRACE_OUTPUT; `simulated`: what is preloaded behind our library. Existing LD_PRELOAD and LD_LIBRARY_PATH
// are kept behind ours.
Variables trace_variables(const TraceOptions& options, const Places& places, const std::string& output,
                          const std::vector<std::string>& simulated);

}  // namespace gputrace
