// Tapes that follow each other, read as one.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "analysis/replay/tape.h"

namespace gputrace {

// They stay where they were recorded: a run's are tens of megabytes.
class TapeOperations {
 public:
  // Of all pieces but the last one there are kPiece.
  void add(std::vector<TapeOperation> piece) { size_ += piece.size(), pieces_.push_back(std::move(piece)); }
  std::size_t size() const { return size_; }
  const TapeOperation& operator[](std::size_t at) const { return pieces_[at / Tape::kPiece][at % Tape::kPiece]; }
  TapeOperation& operator[](std::size_t at) { return pieces_[at / Tape::kPiece][at % Tape::kPiece]; }

 private:
  std::vector<std::vector<TapeOperation>> pieces_;
  std::size_t size_ = 0;
};

struct JoinedTape {
  // At least one. Takes what they hold.
  explicit JoinedTape(std::span<Tape> tapes);

  u32 first, begin, first_wait, first_copy;  // as a Tape has them
  std::vector<TapeCall> calls;               // of each thread in order, of several tapes one thread after the other
  std::vector<TapeWait> waited;
  TapeOperations operations;
  std::vector<TapeCopy> copies;
  std::vector<u32> waits;

  u64 ran() const {
    u64 count = 0;
    for (std::size_t i = 0; i < operations.size(); ++i) count += operations[i].finish != 0;
    return count;
  }
  // Of a copy.
  const TapeCopy& copy(const TapeOperation& operation) const { return copies[operation.target - first_copy]; }
};

}  // namespace gputrace
