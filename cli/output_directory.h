// The output directory of `run`: tokens that are the same for all its processes are resolved here, so that `run` knows
// where to look.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace gputrace {

struct OutputDirectory {
  std::string pattern;  // for GPUTRACE_OUTPUT, absolute; %p, %r, %l and %e are left to the processes
  std::string root;     // the part of it that has no token: traces are there or below
  std::string shown;    // root as the user would write it
};

OutputDirectory resolve_output(const std::string& wanted);

// Every *.gtrace at most four levels below `root`, by path.
std::set<std::string> traces_below(const std::string& root);

// Removes the traces (and nothing else) directly in `root`. Returns how many.
std::size_t remove_traces(const std::string& root);

}  // namespace gputrace
