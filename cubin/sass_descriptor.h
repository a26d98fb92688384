#pragma once
// tcgen05.mma takes its input types from a descriptor in a pair of uniform registers. Compilers know it as a constant
// and move it there before. Looked for backwards to the last write of the register; its value counts only if whatever
// else may lead to the instruction comes through that write: no branch into the stretch between from outside, no other
// write and no call in it. What another path may have put there is not guessed.
#include "cubin/code_image.h"

namespace gputrace {

inline constexpr std::size_t kInstructionBytes = 16;

class DescriptorFinder {
 public:
  explicit DescriptorFinder(ByteSpan code);

  // The upper word of the descriptor for the instruction at this index.
  std::optional<std::uint32_t> find(std::size_t at);

 private:
  struct Edge {
    std::int64_t target, source;
  };

  bool only_through(std::size_t write, std::size_t at, std::uint32_t pair);

  ByteSpan code_;
  std::vector<Edge> edges_;                    // by target
  bool usable_ = true;                         // no branch whose target is unknown
  std::size_t budget_ = std::size_t{1} << 22;  // instructions to look at, over all calls
};

}  // namespace gputrace
