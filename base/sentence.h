// A sentence put together from pieces, for reasons and warnings: no allocation, bounded, always terminated; what does not
// fit is cut.
#pragma once

#include "base/bounded_text.h"

namespace gputrace {

class Sentence : public BoundedText {
 public:
  constexpr Sentence() : BoundedText(text_, sizeof text_ - 1) {}
  const char* text() const { return text_; }
  void clear() { cut_back(0); }

 private:
  char text_[600] = "";
};

}  // namespace gputrace
