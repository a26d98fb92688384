// Gives the native frames of a process their functions and lines, from the objects that were loaded then, where these are
// still there and the same (by their build ids). The others keep the object's path and the place in it.
#pragma once

#include "analysis/facts/source_lines.h"

namespace gputrace {

// At most kMostTime of processor time: what is not named by then stays as it is, and `lines.unnamed` counts it. Any thread.
void name_native_frames(SourceLines& lines);

}  // namespace gputrace
