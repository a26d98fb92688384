// A usual turn of a loop as it lies between two anchors, and where in it the turn begins.
#pragma once

#include <vector>

#include "analysis/steps/loop_text.h"

namespace gputrace {

class LoopCycle {
 public:
  // `pieces`: from anchor to anchor, at least one; `alike` of them are like most.
  LoopCycle(const LoopText& text, const std::vector<Piece>& pieces);

  std::size_t size() const { return cycle_.size(); }
  std::size_t offset() const { return offset_; }  // of a turn's begin after the anchor
  // How sure the begin is: 1 where what is before and after the loop agree on it.
  double sureness() const { return sureness_; }
  // How much a piece that begins as a turn does is one: 1 where it is as the usual one.
  double likeness(const Piece& piece);
  // Of a usual turn's events, sorted; LoopEvent's own.
  std::vector<u32> symbols() const;
  // Event for event a usual turn.
  bool is_turn(const Piece& piece) const { return is_usual(piece, offset_); }
  // Time that the host lets pass before a turn's first event, usually.
  Nanos pause() const { return pause_; }
  // The places at which the turn's first events come, in order; each anchor and offset where they tell nothing.
  std::vector<std::size_t> begins(const std::vector<std::size_t>& anchors) const;
  // Whether the text at that place goes on as a turn begins.
  bool begins_at(std::size_t place) const;
  bool tells_begins() const { return begin_length_ != 0; }
  // How many events after the anchor are as those of the usual turn.
  std::size_t same_after(std::size_t anchor) const;

 private:
  u32 at(std::size_t offset) const { return text_.symbol(cycle_.begin + offset % size()); }
  const LoopEvent& event_at(std::size_t offset) const { return text_.event(cycle_.begin + offset % size()); }
  LoopKind kind_at(std::size_t offset) const { return event_at(offset).kind(); }
  bool is_usual(const Piece& piece, std::size_t offset) const;
  bool ends_as_usual(const Piece& piece) const;
  bool holds_the_same(const Piece& piece) const;
  std::size_t same_before(std::size_t place) const;
  bool has_rest_of_turn(std::size_t anchor, std::size_t same) const;
  std::vector<bool> within_optimizer() const;
  std::vector<Nanos> pauses(const std::vector<Piece>& pieces, Nanos& length) const;
  void choose_offset(const std::vector<Piece>& pieces);
  void find_begin_length();
  // Between two anchors as far apart as usual lies a turn's begin, also where the first events come in another order, as several threads
  // give them: then it is at the nearest event that is like the usual first one, or where that would be.
  void add_begins_in_another_order(const std::vector<std::size_t>& anchors, std::vector<std::size_t>& places) const;

  const LoopText& text_;
  UsualPiece usual_;
  Piece cycle_;
  std::size_t offset_ = 0, begin_length_ = 0;
  double sureness_ = 1;
  Nanos pause_ = 0;
};

// The time at which the event before `place` had ended; 0: there is none.
Nanos ended_before(const LoopText& text, std::size_t place);

}  // namespace gputrace
