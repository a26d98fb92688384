#include "analysis/page/picked_events.h"

#include <algorithm>
#include <bit>

namespace gputrace {
Nanos EventStrip::width_of(Nanos run_length) {
  Nanos width = 1 << 16;
  while (run_length / width + 2 > static_cast<Nanos>(kMostPieces)) width *= 2;
  return width;
}

EventStrip::Piece& EventStrip::at(std::size_t piece) {
  if (pieces.empty()) first = piece;
  if (piece < first) {
    pieces.insert(pieces.begin(), first - piece, {});
    first = piece;
  }
  if (piece - first >= pieces.size()) pieces.resize(piece - first + 1);
  return pieces[piece - first];
}

void EventStrip::add(std::size_t piece, Piece sum) {
  Piece& to = at(piece);
  to.busy_ns += sum.busy_ns;
  to.count += sum.count;
}

void EventStrip::change(Nanos from, Nanos to, bool less) {
  const auto change_by = [&](u64& value, u64 by) { value = less ? value - by : value + by; };
  // A width is a power of two.
  const int shift = std::countr_zero(static_cast<u64>(width));
  std::size_t piece = from < 0 ? 0 : std::min<u64>(static_cast<u64>(from) >> shift, most - 1);
  // Most lie within one piece.
  if (piece - first < pieces.size() && (to <= width * static_cast<Nanos>(piece + 1) || piece + 1 >= most)) {
    Piece& within = pieces[piece - first];
    change_by(within.count, 1);
    return change_by(within.busy_ns, static_cast<u64>(to - from));
  }
  change_by(at(piece).count, 1);
  for (Nanos done = from; done < to; ++piece) {
    const bool last = piece + 1 >= most;
    const Nanos until = last ? to : std::min(to, width * static_cast<Nanos>(piece + 1));
    change_by(at(piece).busy_ns, static_cast<u64>(until - done));
    done = until;
  }
}

EventStrip EventStrip::of_run(Nanos run_length, Nanos origin) {
  EventStrip strip;
  strip.width = width_of(run_length);
  strip.begin = aligned(origin, strip.width) - origin;
  return strip;
}

PickedEvents::PickedEvents(std::size_t most, std::optional<std::pair<Nanos, Nanos>> window) {
  if (window) {
    for (EventSide* side : {&host, &device}) side->begin = window->first, side->end = window->second;
  }
  host.most = most / 3 * 2;  // a call or two for each operation
  device.most = most / 3;
}

void narrow_window(EventSide& side, Nanos middle, Nanos length) {
  const Nanos half = side.whole() ? length / 4 : (side.end - side.begin) / 4;
  side.begin = middle - half, side.end = middle + half;
}

}  // namespace gputrace
