// Gives the native frames of a process their functions and lines, from the objects that were loaded then, where these are
// still there and the same (by their build ids). The others keep the object's path and the place in it.
#pragma once

#include <string>
#include <vector>

#include "analysis/facts/source_lines.h"

namespace gputrace {

// `packages`: folders into which packages were installed, besides every site-packages. Takes at most 2 s of processor time: what is not
// named by then stays as it is. `lines.unnamed` counts what has no function. Any thread.
void name_native_frames(SourceLines& lines, const std::vector<std::string>& packages);

}  // namespace gputrace
