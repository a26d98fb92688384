// What `run` says at the end: where the traces are, what the program did in a line or two, what to do next.
#pragma once

#include <string>
#include <vector>

namespace gputrace {

struct VerdictRequest {
  std::vector<std::string> files;  // of this run
  std::string shown;               // the directory as the user would write it
  std::string report_command;      // "gputrace report"
};

// Lines for stderr; quiet about what is not known.
std::string verdict(const VerdictRequest& request);

}  // namespace gputrace
