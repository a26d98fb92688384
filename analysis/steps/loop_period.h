// The loop of a program, found in the order of what it gave to the device: where the same things come again in the same order.
//
//      start-up │ F B U s │ F B U s │ F B U s │ F F F │ F B U s │ …       F, B, U: launches; s: a wait
//               └ turn ───┴ turn ───┴ turn ───┘ eval  └ turn ───
//
//   · Anchors are what comes once in each turn: single symbols, pairs or runs of four. Between two of them must lie nearly
//     the same things, and they must be all that the loop does: so the layers of a model are no loop, nor are the parts of
//     an accumulated gradient. Of those that hold the finest is the loop.
//   · Where in the cycle a turn begins is told by how the first and the last turn lie in what is before and after the loop, by
//     waits at the end, copies to the device at the begin, and by where the host pauses.
//   · A turn begins when the last call of the one before it ended.
//   · No such order (random launches, one kernel again and again, fewer than three turns): nothing.
// Pure; times are ns on one clock.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/facts/step_facts.h"

namespace gputrace {

struct LoopTurn {
  Nanos begin = 0, end = 0;
};

struct FoundLoop {
  std::vector<LoopTurn> turns;  // in order, not overlapping
  double confidence = 0;        // share of turns alike, less where their begin is not sure
  u64 events = 0;               // in a usual turn
  bool of_graphs = false;       // each turn launches graphs
  std::vector<u32> symbols;     // of a usual turn, sorted: wherever turns begin, loops that do the same have the same
};

// `events` in the order of their begins. `updates(symbol)`: a kernel by whose name it updates parameters or reduces gradients; a
// loop whose every k-th turn has such ones is told by those.
std::optional<FoundLoop> find_period(std::span<const LoopEvent> events, const std::function<bool(u32)>& updates);

// The turns of a loop of which one event each is known. `anchors`: the places in `events` behind those, in order.
std::optional<FoundLoop> turns_around(std::span<const LoopEvent> events, const std::vector<u32>& anchors);

}  // namespace gputrace
