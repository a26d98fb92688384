// What `run` says at the end: the head of the report's first screen, and the next command.
#pragma once

#include <string>
#include <vector>

namespace gputrace {

struct VerdictRequest {
  std::vector<std::string> files;  // of this run
  std::string shown;               // the directory as the user would write it
  std::string report_command;      // "gputrace report"
  std::string color;               // auto, always, never
};

// Lines for stderr; quiet about what is not known.
std::string verdict(const VerdictRequest& request);

}  // namespace gputrace
