// Which files a report is about: from the paths on the command line, or the newest run here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gputrace {

struct InputError {
  std::string message;  // one line, with the fix where there is one
};

// Files as given; of a directory every *.gtrace in it, by name, or, where it holds none itself, those of the
// directories below. No paths: the `gputrace-*` directory of the working directory that holds the newest file. The
// error says which path and why; nothing found is an error.
Result<std::vector<std::string>, InputError> find_trace_files(const std::vector<std::string>& paths);

}  // namespace gputrace
