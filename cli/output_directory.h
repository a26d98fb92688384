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

// A directory that traces can be written into.
struct PreparedOutput {
  std::vector<std::string> made;  // directories that were not there before, outermost first
  std::string problem, fix;       // why nothing can be written there; empty: it can
};
// Makes `root` with its parents (0700) and writes a probe into it, which is removed. What was made stays only where it works.
PreparedOutput prepare_output(const std::string& root, bool allow_shared);
// Removes what prepare_output() made, if nothing was put there.
void remove_if_empty(const PreparedOutput& prepared);

// Every *.gtrace at most four levels below `root`, by path.
std::set<std::string> traces_below(const std::string& root);

// Every gputrace-*.ring at most four levels below `root`: rings in files, in use or left behind.
std::set<std::string> rings_below(const std::string& root);

// Removes the traces (and nothing else) directly in `root`. Returns how many.
std::size_t remove_traces(const std::string& root);

}  // namespace gputrace
