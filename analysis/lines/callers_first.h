// Frames in an order in which each comes behind the one that called it: for what a frame has from its callers.
#pragma once

#include <vector>

#include "analysis/facts/source_lines.h"

namespace gputrace {

// Calls visit(frame, caller) once for each frame but the first, which stands for none; caller: 0 where nobody called it. Definitions of a
// damaged file may call each other in a ring: one of them then comes before its caller.
template <typename Visit>
void for_callers_first(const std::vector<SourceFrame>& frames, Visit&& visit) {
  std::vector<bool> known(frames.size(), false);
  std::vector<u32> path;
  for (u32 frame = 1; frame < frames.size(); ++frame) {
    path.clear();
    for (u32 at = frame; at != 0 && at < frames.size() && !known[at]; at = frames[at].parent) {
      known[at] = true;
      path.push_back(at);
    }
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const u32 caller = frames[*it].parent;
      visit(*it, caller < frames.size() ? caller : 0);
    }
  }
}

// By frame: whether it is such a one, or was called by one, through whatever lies between.
template <typename IsOne>
std::vector<bool> frames_within(const std::vector<SourceFrame>& frames, IsOne&& is_one) {
  std::vector<bool> within(frames.size());
  for_callers_first(frames, [&](u32 frame, u32 caller) { within[frame] = within[caller] || is_one(frames[frame]); });
  return within;
}

}  // namespace gputrace
