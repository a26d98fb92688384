#include "analysis/steps/loop_period.h"

#include <algorithm>

#include "analysis/steps/loop_anchors.h"
#include "analysis/steps/loop_cycle.h"

namespace gputrace {
namespace {

constexpr std::size_t kFewestEvents = 8;     // events; less is no loop
constexpr std::size_t kWindow = 256u << 10;  // events of which the period is sought, from the middle of the run
constexpr double kLikeAStep = 0.6;
constexpr double kLeastConfidence = 0.5;

struct TurnPiece {
  Piece piece;
  bool goes_on = false;  // the next turn follows at once
};

// When what begins at `place` does: when the call before it ended, but not longer before than is usual.
Nanos begin_of(const LoopText& text, const LoopCycle& cycle, std::size_t place, bool follows) {
  const Nanos before = ended_before(text, place);
  if (follows) return before;
  return std::max(before, text.event(place).begin - cycle.pause());
}

FoundLoop make_loop(const LoopText& text, const LoopCycle& cycle, const std::vector<TurnPiece>& pieces, double alike) {
  FoundLoop loop;
  loop.events = cycle.size();
  loop.symbols = cycle.symbols();
  bool follows = false;
  for (const TurnPiece& each : pieces) {
    LoopTurn turn;
    turn.begin = begin_of(text, cycle, each.piece.begin, follows);
    for (std::size_t i = each.piece.begin; i < each.piece.end; ++i) {
      turn.end = std::max(turn.end, text.event(i).end);
      loop.of_graphs |= text.event(i).kind() == LoopKind::Graph;
    }
    if (each.goes_on) turn.end = begin_of(text, cycle, each.piece.end, true);
    if (!loop.turns.empty()) turn.begin = std::max(turn.begin, loop.turns.back().end);
    if (turn.end > turn.begin) loop.turns.push_back(turn);
    follows = each.goes_on;
  }
  loop.confidence = alike * cycle.sureness();
  return loop;
}

// Cuts the text at the places where turns begin. What is no turn (evaluation, saving) is left out, also where it follows one.
std::vector<TurnPiece> cut(const LoopText& text, LoopCycle& cycle, const std::vector<std::size_t>& begins,
                           double& alike) {
  std::vector<TurnPiece> pieces;
  double sum = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const bool last = i + 1 == begins.size();
    Piece piece{begins[i], last ? text.size() : begins[i + 1]};
    if (piece.size() > cycle.size() && !last) {  // something else, then a turn
      const Piece head{piece.begin, piece.begin + cycle.size()}, tail{piece.end - cycle.size(), piece.end};
      if (cycle.is_turn(tail) && !cycle.is_turn(head)) piece.begin = tail.begin;
    }
    const std::size_t usual_end = std::min(piece.begin + cycle.size(), text.size());
    double like = cycle.likeness(piece);
    bool whole = like >= kLikeAStep && (!last || piece.end <= usual_end);
    if (!whole && piece.end > usual_end) {
      piece.end = usual_end;
      like = cycle.likeness(piece);
    }
    if (like < kLikeAStep) continue;
    pieces.push_back({piece, whole && !last});
    sum += like;
  }
  alike = pieces.empty() ? 0 : sum / static_cast<double>(pieces.size());
  return pieces;
}

}  // namespace

std::optional<FoundLoop> find_period(std::span<const LoopEvent> events, const std::function<bool(u32)>& updates) {
  if (events.size() < kFewestEvents) return std::nullopt;
  const std::size_t length = std::min(events.size(), kWindow), from = (events.size() - length) / 2;
  const LoopText window(events.subspan(from, length));
  const auto found = find_anchors(window, updates);
  if (!found) return std::nullopt;
  std::vector<std::size_t> anchors;
  for (const Piece& piece : found->pieces) anchors.push_back(piece.begin);
  anchors.push_back(found->pieces.back().end);
  std::optional<LoopText> whole;
  const LoopText& text = length == events.size() ? window : whole.emplace(events);
  std::vector<Piece> pieces = found->pieces;
  for (Piece& piece : pieces) piece.begin += from, piece.end += from;
  for (std::size_t& anchor : anchors) anchor += from;
  LoopCycle cycle(text, pieces);
  double alike = 0;
  const std::vector<TurnPiece> turns = cut(text, cycle, cycle.begins(anchors), alike);
  FoundLoop loop = make_loop(text, cycle, turns, alike);
  if (loop.turns.size() <= 3 || loop.confidence < kLeastConfidence) return std::nullopt;
  return loop;
}

std::optional<FoundLoop> turns_around(std::span<const LoopEvent> events, const std::vector<u32>& anchors) {
  if (anchors.size() < 2) return std::nullopt;
  const LoopText text(events);
  std::vector<Piece> pieces;
  for (std::size_t i = 1; i < anchors.size(); ++i) pieces.push_back({anchors[i - 1], anchors[i]});
  LoopCycle cycle(text, pieces);
  const std::size_t ahead = cycle.size() - cycle.offset();  // events of a turn before its anchor
  std::vector<TurnPiece> turns;
  std::size_t earliest = 0;
  for (const u32 anchor : anchors) {
    const std::size_t expected = anchor > ahead + earliest ? anchor - ahead : earliest;
    std::size_t begin = expected;
    if (cycle.tells_begins()) {
      for (std::size_t away = 0; away <= std::max(expected - earliest, anchor - expected); ++away) {
        if (expected + away < anchor && cycle.begins_at(expected + away)) {
          begin = expected + away;
          break;
        }
        if (away <= expected - earliest && cycle.begins_at(expected - away)) {
          begin = expected - away;
          break;
        }
      }
    }
    const std::size_t tail = anchor + cycle.same_after(anchor);
    if (!turns.empty()) {
      // What lies between the end of a turn and the begin of the next is of the former where it is as long as usual.
      TurnPiece& before = turns.back();
      before.goes_on = begin <= before.piece.end + 3;
      if (before.goes_on) before.piece.end = begin;
    }
    turns.push_back({{begin, tail}, false});
    earliest = turns.back().piece.end;
  }
  return make_loop(text, cycle, turns, 1);
}

}  // namespace gputrace
