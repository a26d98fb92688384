// Files of /proc and the like, read whole.
#pragma once

#include <string>

namespace gputrace {

// Empty: it cannot be read, or is.
std::string read_file(const std::string& path);

}  // namespace gputrace
