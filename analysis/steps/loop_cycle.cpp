#include "analysis/steps/loop_cycle.h"

#include <algorithm>
#include <map>
#include <set>

namespace gputrace {
namespace {

constexpr std::size_t kPiecesAsked = 64;  // of which pauses are taken
constexpr std::size_t kLongestBegin = 8;  // events that tell where a turn begins
constexpr double kMostOfTheRest = 0.8;    // of what else a turn holds

// The most frequent length among pieces that are like most.
Piece most_usual(UsualPiece& usual, const std::vector<Piece>& pieces) {
  std::map<std::size_t, std::size_t> lengths;
  const std::size_t step = std::max<std::size_t>(1, pieces.size() / 4096);
  for (std::size_t i = 0; i < pieces.size(); i += step) lengths[pieces[i].size()] += usual.likeness(pieces[i]) >= 0.7;
  const auto most = std::max_element(lengths.begin(), lengths.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const Piece* best = &pieces[pieces.size() / 2];
  double likest = -1;
  for (std::size_t i = 0; i < pieces.size(); i += step) {
    if (pieces[i].size() != most->first) continue;
    const double like = usual.likeness(pieces[i]);
    if (like > likest + 1e-9) likest = like, best = &pieces[i];
  }
  return *best;
}

Nanos middle(std::vector<Nanos>& values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

Nanos ended_before(const LoopText& text, std::size_t place) {
  constexpr std::size_t kBack = 8;  // calls of other threads may end later than the one before
  Nanos end = 0;
  for (std::size_t i = place > kBack ? place - kBack : 0; i < place; ++i) {
    const LoopEvent& event = text.event(i);
    end = std::max(end, std::min(event.end, text.event(place).begin));
  }
  return end;
}

LoopCycle::LoopCycle(const LoopText& text, const std::vector<Piece>& pieces)
    : text_(text), usual_(text, pieces), cycle_(most_usual(usual_, pieces)) {
  choose_offset(pieces);
  find_begin_length();
}

std::vector<u32> LoopCycle::symbols() const {
  std::vector<u32> symbols;
  for (std::size_t i = cycle_.begin; i < cycle_.end; ++i) symbols.push_back(text_.event(i).symbol);
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

bool LoopCycle::is_usual(const Piece& piece, std::size_t offset) const {
  if (piece.size() != size()) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (text_.symbol(piece.begin + i) != at(offset + i)) return false;
  }
  return true;
}

bool LoopCycle::ends_as_usual(const Piece& piece) const {
  if (piece.size() < 2 || size() < 3) return false;
  return text_.symbol(piece.end - 1) == at(offset_ + size() - 1) &&
         text_.symbol(piece.end - 2) == at(offset_ + size() - 2);
}

// The same things in another order, as several threads give them.
bool LoopCycle::holds_the_same(const Piece& piece) const {
  constexpr double kNearlyAll = 0.95;
  std::map<u32, i64> counts;
  for (std::size_t i = 0; i < size(); ++i) ++counts[at(i)];
  std::size_t same = 0;
  for (std::size_t i = piece.begin; i < piece.end; ++i) same += counts[text_.symbol(i)]-- > 0;
  return static_cast<double>(2 * same) >= kNearlyAll * static_cast<double>(size() + piece.size());
}

// A turn that took another branch in its middle is still one.
double LoopCycle::likeness(const Piece& piece) {
  constexpr double kOfABranch = 0.3, kStillATurn = 0.6;
  if (is_usual(piece, offset_)) return 1;
  const double like = usual_.likeness(piece);
  if (like < kStillATurn && holds_the_same(piece)) return kStillATurn;
  return like >= kOfABranch && ends_as_usual(piece) ? std::max(like, kStillATurn) : like;
}

// How many events up to `place`, which is an anchor, are as those of the usual turn.
std::size_t LoopCycle::same_before(std::size_t place) const {
  std::size_t same = 0;
  while (same < size() && same < place && text_.symbol(place - 1 - same) == at(size() - 1 - same)) ++same;
  return same;
}

// Whether nearly all that a turn holds before its last `same` events comes shortly before those, in whatever order, other things among it.
bool LoopCycle::has_rest_of_turn(std::size_t anchor, std::size_t same) const {
  std::set<u32> rest;
  for (std::size_t i = 0; i + same < size(); ++i) rest.insert(at(i));
  const std::size_t asked = rest.size(), end = anchor - same;
  for (std::size_t i = end - std::min(end, 2 * size()); i < end; ++i) rest.erase(text_.symbol(i));
  return asked != 0 && static_cast<double>(asked - rest.size()) >= kMostOfTheRest * static_cast<double>(asked);
}

// The usual pause before each event of the cycle, and the usual length of one.
std::vector<Nanos> LoopCycle::pauses(const std::vector<Piece>& pieces, Nanos& length) const {
  std::vector<const Piece*> asked;
  for (const Piece& piece : pieces) {
    if (asked.size() < kPiecesAsked && piece.begin != 0 && is_usual(piece, 0)) asked.push_back(&piece);
  }
  std::vector<Nanos> usual(size()), values;
  for (std::size_t i = 0; i < size(); ++i) {
    values.clear();
    for (const Piece* piece : asked)
      values.push_back(text_.event(piece->begin + i).begin - ended_before(text_, piece->begin + i));
    usual[i] = middle(values);
  }
  values.clear();
  for (const Piece* piece : asked) {
    if (piece->end < text_.size()) values.push_back(text_.event(piece->end).begin - text_.event(piece->begin).begin);
  }
  length = std::max<Nanos>(1, middle(values));
  return usual;
}

// Offsets of events that an optimizer's step gave: no turn begins with those.
std::vector<bool> LoopCycle::within_optimizer() const {
  std::vector<bool> within(size());
  for (std::size_t i = 0; i < size(); ++i) {
    if (within[i] || !event_at(i).is(LoopMark::OptimizerBegins)) continue;
    unsigned depth = 0;  // one may call another
    for (std::size_t k = i; k < i + size(); ++k) {
      within[k % size()] = true;
      depth += event_at(k).is(LoopMark::OptimizerBegins);
      if (event_at(k).is(LoopMark::OptimizerStep) && --depth == 0) break;
    }
  }
  return within;
}

void LoopCycle::choose_offset(const std::vector<Piece>& pieces) {
  const std::size_t first = pieces.front().begin, last = pieces.back().end;
  const std::size_t before = same_before(first);
  std::size_t after = 0;
  while (after < size() && last + after < text_.size() && text_.symbol(last + after) == at(after)) ++after;
  // Where the first turn is one in another form (a warm-up), what it has in common with others says nothing of where they begin.
  const bool other_form = has_rest_of_turn(first, before);
  const std::size_t by_end = after % size(), by_begin = other_form ? by_end : (size() - before) % size();
  Nanos length = 1;
  const std::vector<Nanos> pause = pauses(pieces, length);
  const std::vector<bool> optimizer = within_optimizer();
  double best = -1;
  for (std::size_t i = 0; i < size(); ++i) {
    if (optimizer[i]) continue;
    const LoopKind here = kind_at(i), previous = kind_at(i + size() - 1);
    double score = 3 * static_cast<double>(pause[i]) / static_cast<double>(length);
    score += 2 * (i == by_begin && !other_form) + 2 * (i == by_end);
    score += previous == LoopKind::Wait ? 1 : previous == LoopKind::ToHost ? 0.75 : 0;
    score += here == LoopKind::ToDevice ? 0.5 : 0;
    score += at(i) != at(i + size() - 1) ? 0.1 : 0;
    if (score > best) best = score, offset_ = i;
  }
  pause_ = pause[offset_];
  sureness_ = !other_form && by_begin == by_end && offset_ == by_begin ? 1
              : offset_ == by_begin || offset_ == by_end               ? 0.9
                                                                       : 0.75;
}

// As few events as come nowhere else in the cycle.
void LoopCycle::find_begin_length() {
  for (std::size_t length = 1; length <= std::min(kLongestBegin, size()) && begin_length_ == 0; ++length) {
    std::size_t alike = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      std::size_t same = 0;
      while (same < length && at(i + same) == at(offset_ + same)) ++same;
      alike += same == length;
    }
    if (alike == 1) begin_length_ = length;
  }
}

bool LoopCycle::begins_at(std::size_t place) const {
  if (place + begin_length_ > text_.size()) return false;
  for (std::size_t i = 0; i < begin_length_; ++i) {
    if (text_.symbol(place + i) != at(offset_ + i)) return false;
  }
  return true;
}

std::vector<std::size_t> LoopCycle::begins(const std::vector<std::size_t>& anchors) const {
  std::vector<std::size_t> places;
  if (begin_length_ == 0) {
    const std::size_t ahead = size() - offset_;
    if (ahead < size() && same_before(anchors.front()) >= ahead) places.push_back(anchors.front() - ahead);
    for (const std::size_t anchor : anchors) {
      if (anchor + offset_ < text_.size()) places.push_back(anchor + offset_);
    }
    return places;
  }
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (begins_at(i)) places.push_back(i);
  }
  add_begins_in_another_order(anchors, places);
  return places;
}

void LoopCycle::add_begins_in_another_order(const std::vector<std::size_t>& anchors,
                                            std::vector<std::size_t>& places) const {
  const std::size_t room = size() / 4, found = places.size();
  for (std::size_t i = 1; i < anchors.size(); ++i) {
    const std::size_t from = anchors[i - 1], to = anchors[i], length = to - from;
    if (length + room < size() || length > size() + room) continue;
    const std::size_t expected = std::min(from + offset_, to - 1), near = size() / 2;
    const auto end = places.begin() + static_cast<std::ptrdiff_t>(found);
    const auto known = std::lower_bound(places.begin(), end, expected - std::min(expected, near));
    if (known != end && *known <= expected + near) continue;
    const auto away = [&](std::size_t place) { return place > expected ? place - expected : expected - place; };
    std::size_t nearest = expected;
    bool is_like = false;
    for (std::size_t place = from; place < to; ++place) {
      if (text_.symbol(place) != at(offset_) || (is_like && away(place) >= away(nearest))) continue;
      nearest = place, is_like = true;
    }
    places.push_back(nearest);
  }
  std::sort(places.begin(), places.end());
}

std::size_t LoopCycle::same_after(std::size_t anchor) const {
  std::size_t same = 0;
  while (same < offset_ && anchor + same < text_.size() && text_.symbol(anchor + same) == at(same)) ++same;
  return same;
}

}  // namespace gputrace
