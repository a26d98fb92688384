// The entries of a folder of /proc that are numbers: processes, or the threads of one.
#pragma once

#include <dirent.h>

#include <cstdlib>
#include <string>

#include "base/types.h"

namespace gputrace {

// Calls `visit(number)` for each; false: it cannot be read.
template <typename Visit>
bool numbers_in(const std::string& folder, Visit&& visit) {
  DIR* const directory = ::opendir(folder.c_str());
  if (!directory) return false;
  while (const dirent* entry = ::readdir(directory)) {
    const i32 number = std::atoi(entry->d_name);
    if (number > 0) visit(number);
  }
  ::closedir(directory);
  return true;
}

}  // namespace gputrace
