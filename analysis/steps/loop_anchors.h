// What comes once in each turn of a loop, found by the spaces between its places.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/steps/loop_text.h"

namespace gputrace {

struct LoopAnchors {
  std::vector<Piece> pieces;  // from each anchor to the next
  std::size_t alike = 0;      // of them: those that hold nearly the same
};

// Of a text that repeats itself: the finest pieces that hold all that the loop does. `updates`: see loop_period.h.
std::optional<LoopAnchors> find_anchors(const LoopText& text, const std::function<bool(u32)>& updates);

}  // namespace gputrace
