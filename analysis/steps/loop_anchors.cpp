#include "analysis/steps/loop_anchors.h"

#include <map>
#include <unordered_map>

namespace gputrace {
namespace {

constexpr std::size_t kFewestPieces = 3;     // a pattern that comes three times
constexpr std::size_t kMostCandidates = 48;  // looked at as a whole, those with the most regular spaces first
constexpr double kSameSpace = 0.12;          // a space that far from the usual one is regular
constexpr double kAlike = 0.7, kComplete = 0.97;

struct Candidate {
  std::vector<u32> places;
  double regular = 0;  // share of the spaces that are as long as the usual one
  double covered = 0;  // of the text
};

// Several in a row, as an optimizer's launches come, are one.
std::vector<u32> first_of_each_burst(const u32* places, std::size_t count) {
  const u64 mean = (places[count - 1] - places[0]) / (count - 1);
  std::vector<u32> first{places[0]};
  for (std::size_t i = 1; i < count; ++i) {
    if (u64{places[i] - places[i - 1]} * 8 >= mean) first.push_back(places[i]);
  }
  return first;
}

Candidate judge_spaces(std::vector<u32> places, std::size_t text) {
  Candidate candidate;
  std::vector<u32> spaces;
  for (std::size_t i = 1; i < places.size(); ++i) spaces.push_back(places[i] - places[i - 1]);
  std::vector<u32> sorted = spaces;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double usual = sorted[sorted.size() / 2], room = std::max(1.0, usual * kSameSpace);
  std::size_t regular = 0;
  for (const u32 space : spaces) regular += space >= usual - room && space <= usual + room;
  candidate.regular = static_cast<double>(regular) / static_cast<double>(spaces.size());
  candidate.covered = static_cast<double>(places.back() - places.front()) / static_cast<double>(text);
  candidate.places = std::move(places);
  return candidate;
}

// The places of each different run of that length, one after the other.
class Places {
 public:
  Places(const LoopText& text, std::size_t length) : first_(text.different_runs(length) + 1) {
    const std::vector<u32>& runs = text.runs(length);
    for (const u32 run : runs) ++first_[run + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    places_.resize(runs.size());
    std::vector<u32> next(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < runs.size(); ++i) places_[next[runs[i]]++] = static_cast<u32>(i);
  }
  std::size_t size() const { return first_.size() - 1; }
  std::span<const u32> of(std::size_t run) const {
    return {places_.data() + first_[run], places_.data() + first_[run + 1]};
  }

 private:
  std::vector<u32> first_, places_;
};

// The best anchor for each number of turns, the most regular ones first.
std::vector<Candidate> candidates_of(const LoopText& text) {
  std::map<std::size_t, Candidate> by_turns;
  for (std::size_t length = 1; length <= 3; ++length) {
    const Places places(text, length);
    for (std::size_t run = 0; run < places.size(); ++run) {
      const auto own = places.of(run);
      if (own.size() <= kFewestPieces) continue;
      std::vector<u32> first = first_of_each_burst(own.data(), own.size());
      if (first.size() <= kFewestPieces) continue;
      Candidate made = judge_spaces(std::move(first), text.size());
      Candidate& best = by_turns[made.places.size()];
      if (best.places.empty() || made.regular > best.regular + 0.001) best = std::move(made);
    }
  }
  std::vector<Candidate> all;
  all.reserve(by_turns.size());
  for (auto& [turns, candidate] : by_turns) all.push_back(std::move(candidate));
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.regular * a.covered > b.regular * b.covered;
  };
  std::stable_sort(all.begin(), all.end(), better);
  if (all.size() > kMostCandidates) all.resize(kMostCandidates);
  return all;
}

// Of the pieces that are alike: how much of them are symbols that nearly all of them hold.
double completeness(const LoopText& text, const std::vector<Piece>& pieces, const std::vector<bool>& alike,
                    std::size_t count) {
  std::vector<u32> in_pieces(text.symbols()), times(text.symbols()), stamp(text.symbols(), ~0u);
  u64 all = 0, common = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!alike[i]) continue;
    for (std::size_t at = pieces[i].begin; at < pieces[i].end; ++at) {
      const u32 symbol = text.symbol(at);
      ++times[symbol];
      if (stamp[symbol] != i) stamp[symbol] = static_cast<u32>(i), ++in_pieces[symbol];
    }
    all += pieces[i].size();
  }
  for (std::size_t symbol = 0; symbol < times.size(); ++symbol) {
    if (in_pieces[symbol] * 5 >= count * 4) common += times[symbol];
  }
  return all ? static_cast<double>(common) / static_cast<double>(all) : 0;
}

// One kernel again and again tells no turns; nor do copies alone: parameters go to a device one after the other.
bool says_nothing(const LoopText& text, const std::vector<Piece>& pieces) {
  const auto of_one = [&](const Piece& piece) {
    bool computes = false, changes = false;
    for (std::size_t at = piece.begin; at < piece.end; ++at) {
      const LoopKind kind = text.event(at).kind();
      if (kind == LoopKind::Graph) return false;
      computes = computes || kind == LoopKind::Kernel;
      changes = changes || text.symbol(at) != text.symbol(piece.begin);
    }
    return !computes || !changes;
  };
  return static_cast<std::size_t>(std::count_if(pieces.begin(), pieces.end(), of_one)) * 2 >= pieces.size();
}

// Pieces that hold kernels which most do not, and what they hold of that which all have.
struct Strangers {
  std::vector<u32> pieces;
  u64 events = 0;                       // of such kernels
  bool named = false;                   // one of them updates parameters, by its name
  double common = 0, usual_common = 0;  // events of other symbols in those pieces, and in the others: means
  double time = 0;                      // share of the time that those pieces take
};

Strangers find_strangers(const LoopText& text, const std::vector<Piece>& pieces,
                         const std::function<bool(u32)>& updates) {
  std::vector<u32> in_pieces(text.symbols()), stamp(text.symbols(), ~0u);
  const auto for_each = [&](auto&& visit) {
    for (u32 i = 0; i < pieces.size(); ++i) {
      for (std::size_t at = pieces[i].begin; at < pieces[i].end; ++at) visit(i, at, text.symbol(at));
    }
  };
  for_each([&](u32 piece, std::size_t, u32 symbol) {
    if (stamp[symbol] != piece) stamp[symbol] = piece, ++in_pieces[symbol];
  });
  Strangers found;
  u64 common = 0;
  std::vector<u32> common_of(pieces.size());
  for_each([&](u32 piece, std::size_t at, u32 symbol) {
    const bool strange = in_pieces[symbol] * 2 < pieces.size() && text.event(at).is_launch();
    if (!strange) return static_cast<void>(++common_of[piece], ++common);
    if (found.pieces.empty() || found.pieces.back() != piece) found.pieces.push_back(piece);
    ++found.events;
    found.named = found.named || updates(text.event(at).symbol);
  });
  const auto ends = [&](const Piece& piece) { return text.event(std::min(piece.end, text.size() - 1)).begin; };
  const auto length = [&](const Piece& piece) {
    return static_cast<double>(ends(piece) - text.event(piece.begin).begin);
  };
  u64 own = 0;
  for (const u32 piece : found.pieces) own += common_of[piece], found.time += length(pieces[piece]);
  found.time /= std::max(1.0, length({pieces.front().begin, pieces.back().end}));
  if (!found.pieces.empty()) found.common = static_cast<double>(own) / static_cast<double>(found.pieces.size());
  if (pieces.size() > found.pieces.size())
    found.usual_common = static_cast<double>(common - own) / static_cast<double>(pieces.size() - found.pieces.size());
  return found;
}

bool holds(const LoopText& text, const Piece& piece, LoopKind kind) {
  for (std::size_t at = piece.begin; at < piece.end; ++at) {
    if (text.event(at).kind() == kind) return true;
  }
  return false;
}

// Whether each of the strangers computes a little of a result and copies it to the host, as a log line does now and then, and each usual piece
// has an input of its own: then these are the turns. (A model's layers have none, and an optimizer launches more.)
bool are_logged(const LoopText& text, const std::vector<Piece>& pieces, const Strangers& found) {
  constexpr u64 kMostKernels = 2;
  if (found.named || found.events > kMostKernels * found.pieces.size()) return false;
  std::size_t inputs = 0, results = 0, results_of_strangers = 0;
  for (const Piece& piece : pieces)
    inputs += holds(text, piece, LoopKind::ToDevice), results += holds(text, piece, LoopKind::ToHost);
  for (const u32 piece : found.pieces) results_of_strangers += holds(text, pieces[piece], LoopKind::ToHost);
  const std::size_t usual = pieces.size() - found.pieces.size();
  return inputs * 10 >= pieces.size() * 9 && results_of_strangers * 10 >= found.pieces.size() * 9 &&
         (results - results_of_strangers) * 10 <= usual;
}

// Whether the pieces are parts of larger turns: at equal distances (or with a good part of all that is launched) comes one with
// kernels that the others do not have, as a model's layers are followed by its loss, and an accumulated gradient by the optimizer. Evaluation and saving, which come now
// and then with loops of their own, are none, unless most of the time goes there: reading what came out item by item is no loop of turns.
bool are_parts(const LoopText& text, const std::vector<Piece>& pieces, const std::function<bool(u32)>& updates) {
  constexpr std::size_t kTimes = 8, kTimesNamed = 4;
  constexpr double kLeastShare = 0.005, kLargeShare = 0.05, kMostCommon = 3, kMostTime = 0.5;
  const Strangers found = find_strangers(text, pieces, updates);
  if (found.pieces.size() < (found.named ? kTimesNamed : kTimes)) return false;
  const double share = static_cast<double>(found.events) / static_cast<double>(text.size());
  if (!found.named && share < kLeastShare) return false;
  if (are_logged(text, pieces, found)) return false;
  if (found.common > kMostCommon * found.usual_common + 2 && found.time <= kMostTime)
    return false;  // a loop of its own
  return found.named || share >= kLargeShare || judge_spaces(found.pieces, pieces.size()).regular >= 0.8;
}

// Every second to ninth piece, or a few in a row, are others, at equal distances: the turn holds several of them, as one of speculative decoding holds a few passes
// of the small model and one of the large one.
bool others_come_regularly(const std::vector<bool>& alike) {
  constexpr std::size_t kTimes = 4, kMostOfATurn = 9;
  std::vector<u32> others;
  for (u32 i = 0; i < alike.size(); ++i) {
    if (!alike[i] && (i == 0 || alike[i - 1])) others.push_back(i);  // several in a row are one
  }
  if (others.size() < kTimes || others.size() * kMostOfATurn < alike.size()) return false;
  return judge_spaces(others, alike.size()).regular >= 0.8;
}

std::vector<Piece> pieces_of(const Candidate& candidate) {
  std::vector<Piece> pieces;
  for (std::size_t i = 1; i < candidate.places.size(); ++i)
    pieces.push_back({candidate.places[i - 1], candidate.places[i]});
  return pieces;
}

// How many pieces take something from the host, give it something, or both.
struct Exchanges {
  std::size_t either = 0, both = 0;
};
Exchanges exchanges_of(const LoopText& text, const std::vector<Piece>& pieces) {
  Exchanges found;
  for (const Piece& piece : pieces) {
    const bool takes = holds(text, piece, LoopKind::ToDevice), gives = holds(text, piece, LoopKind::ToHost);
    found.either += takes || gives;
    found.both += takes && gives;
  }
  return found;
}

// Nearly each piece takes something from the host or gives it something: then it is a turn, and no layer of a model.
bool have_copies(const LoopText& text, const std::vector<Piece>& pieces) {
  return exchanges_of(text, pieces).either * 10 >= pieces.size() * 9;
}

// The same events, but for kernels that stand between the same two neighbours in nearly all pieces: those are one kernel there. By the length of a
// sequence, say, it is now this one, now that.
std::vector<LoopEvent> with_one_for_others(const LoopText& text, const std::vector<Piece>& pieces) {
  struct Gap {
    std::size_t pieces = 0, newest = 0;  // in how many; 1 + the newest of them
    u32 symbol = 0;                      // of the first kernel there
  };
  std::unordered_map<u64, Gap> gaps;
  const auto key = [&](std::size_t at) {
    const u64 before = at > 0 ? text.symbol(at - 1) + 1 : 0;
    return before << 32 | (at + 1 < text.size() ? text.symbol(at + 1) + 1 : 0);
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t at = pieces[i].begin; at < pieces[i].end; ++at) {
      if (text.event(at).kind() != LoopKind::Kernel) continue;
      Gap& gap = gaps[key(at)];
      if (gap.pieces == 0) gap.symbol = text.event(at).symbol;
      if (gap.newest != i + 1) gap.newest = i + 1, ++gap.pieces;
    }
  }
  std::vector<LoopEvent> events;
  events.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    LoopEvent& event = events.emplace_back(text.event(at));
    if (event.kind() != LoopKind::Kernel) continue;
    const auto gap = gaps.find(key(at));
    if (gap != gaps.end() && gap->second.pieces * 10 >= pieces.size() * 9) event.symbol = gap->second.symbol;
  }
  return events;
}

std::optional<LoopAnchors> judge_candidate(const LoopText& text, const Candidate& candidate, double predictable,
                                           const std::function<bool(u32)>& updates) {
  LoopAnchors made;
  made.pieces = pieces_of(candidate);
  const double least_alike = candidate.regular >= 0.6 ? 0.5 : predictable >= 0.85 ? 0.8 : 2;
  if (least_alike > 1 || says_nothing(text, made.pieces)) return std::nullopt;
  UsualPiece usual(text, made.pieces);
  std::vector<bool> alike;
  for (const Piece& piece : made.pieces) {
    alike.push_back(usual.likeness(piece) >= kAlike);
    made.alike += alike.back();
  }
  if (made.alike < kFewestPieces || static_cast<double>(made.alike) < least_alike * static_cast<double>(alike.size()))
    return std::nullopt;
  if (completeness(text, made.pieces, alike, made.alike) < kComplete) return std::nullopt;
  if (others_come_regularly(alike)) return std::nullopt;
  if (are_parts(text, made.pieces, updates)) return std::nullopt;
  return made;
}

}  // namespace

std::optional<LoopAnchors> find_anchors(const LoopText& text, const std::function<bool(u32)>& updates) {
  constexpr double kLeastPredictable = 0.75, kLeastCovered = 0.25, kLeastOfBest = 0.85, kSamePeriod = 1.8;
  constexpr double kSure = 0.9;               // regular, and nearly all of the text
  constexpr unsigned kMostLookedAtTwice = 4;  // a text is made anew for each
  const double predictable = text.predictability();
  if (predictable < kLeastPredictable) return std::nullopt;
  struct Loop {
    LoopAnchors anchors;
    double order;  // how regular it is, by its spaces and by what they hold
    Exchanges exchanges;
  };
  std::vector<Loop> loops;
  unsigned looked_at_twice = 0;
  for (const Candidate& candidate : candidates_of(text)) {
    if (candidate.covered < kLeastCovered) continue;
    auto made = judge_candidate(text, candidate, predictable, updates);
    const bool sure = std::min(candidate.regular, candidate.covered) >= kSure;
    const std::vector<Piece> pieces = pieces_of(candidate);
    if (!made && sure && looked_at_twice < kMostLookedAtTwice && have_copies(text, pieces)) {
      ++looked_at_twice;
      const std::vector<LoopEvent> events = with_one_for_others(text, pieces);
      made = judge_candidate(LoopText(events), candidate, predictable, updates);
    }
    if (!made) continue;
    const double alike = static_cast<double>(made->alike) / static_cast<double>(made->pieces.size());
    loops.push_back({std::move(*made), candidate.regular * alike, exchanges_of(text, pieces)});
  }
  // Where threads launch in an order that varies (TensorFlow's executors), some run of launches comes in most turns and now and then twice:
  // another with nearly as many pieces is more regular. (One with half of them or fewer is of larger turns.)
  const auto is_noise = [&loops](const Loop& loop) {
    return std::any_of(loops.begin(), loops.end(), [&loop](const Loop& other) {
      const double more =
          static_cast<double>(loop.anchors.pieces.size()) / static_cast<double>(other.anchors.pieces.size());
      return more > 1 && more < kSamePeriod && loop.order < kLeastOfBest * other.order;
    });
  };
  // Most of its pieces exchange nothing with the host, and nearly each turn of a larger loop takes an input and gives a result: a model's layers, where
  // nothing is launched but them, and its requests.
  const auto is_part = [&loops](const Loop& loop) {
    const std::size_t pieces = loop.anchors.pieces.size();
    return 2 * loop.exchanges.either <= pieces && std::any_of(loops.begin(), loops.end(), [pieces](const Loop& other) {
             const std::size_t turns = other.anchors.pieces.size();
             return other.order >= kSure && 2 * turns <= pieces && other.exchanges.both * 10 >= turns * 9;
           });
  };
  const Loop* finest = nullptr;
  for (const Loop& loop : loops) {
    if (!is_noise(loop) && !is_part(loop) && (!finest || loop.anchors.pieces.size() > finest->anchors.pieces.size()))
      finest = &loop;
  }
  if (!finest) return std::nullopt;
  return finest->anchors;
}

}  // namespace gputrace
