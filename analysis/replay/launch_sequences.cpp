// Replay: which launches repeat, and so could be one launch of a graph.
#include <algorithm>
#include <span>
#include <unordered_map>

#include "analysis/replay/replay.h"

namespace gputrace {
namespace {

constexpr std::size_t kShort = 5;      // launches; fewer are hardly worth a capture
constexpr std::size_t kUnrolled = 20;  // launches of one graph, where the period is shorter
constexpr u64 kRepeats = 3;            // that often at least: below it is start-up, not a loop

// Launches of kernels, memsets and copies on the device with nothing but calls without a meaning between them.
struct Run {
  std::vector<u32> calls;     // all of them
  std::vector<u64> launches;  // kernel (of memsets and copies: their group) and stream of each
  std::vector<u32> of;        // its place in calls

  u64 key() const {
    u64 key = 0x9e3779b97f4a7c15ull;
    for (const u64 launch : launches) key = (key ^ launch) * 0xff51afd7ed558ccdull, key ^= key >> 32;
    return key;
  }
};

// The period of the run's end, and the launch from which on it holds; 0: none that comes kRepeats times.
struct Period {
  std::size_t length = 0, from = 0;
};
Period period_of(const std::vector<u64>& launches) {
  const std::size_t count = launches.size();
  const auto back = [&](std::size_t i) { return launches[count - 1 - i]; };
  std::vector<std::size_t> border(count +
                                  1);  // of the last so many launches: the longest one that both begins and ends them
  for (std::size_t many = 2; many <= count; ++many) {
    std::size_t known = border[many - 1];
    while (known != 0 && back(known) != back(many - 1)) known = border[known];
    border[many] = known + (back(known) == back(many - 1));
    const std::size_t length = many - border[many];
    if (many < kRepeats * kShort || many < kRepeats * length) continue;
    std::size_t from = count - many;
    while (from > 0 && launches[from - 1] == launches[from - 1 + length]) --from;
    return {length, from};
  }
  return {};
}

// Copies from and to the host bring other bytes each time, to other places, and may hold the host: they stay calls.
bool has_place_in_graph(const JoinedTape& tape, const TapeOperation& operation,
                        const std::vector<TimelineCopies>& copies) {
  if (operation.kind != OperationKind::Copy)
    return operation.kind == OperationKind::Kernel || operation.kind == OperationKind::Memset;
  const u32 group = tape.copy(operation).group;
  if (group >= copies.size()) return false;
  const CopyKey& key = copies[group].key;
  return key.kind == TransferKind::DtoD && key.asynchronous;
}

u64 key_of(const JoinedTape& tape, const TapeOperation& operation) {
  constexpr unsigned kKindAt = 62;
  const u64 target = operation.kind == OperationKind::Copy ? tape.copy(operation).group : operation.target;
  return static_cast<u64>(operation.kind) << kKindAt ^ (target << 32 | operation.stream);
}

// The host's way from one launch to the next: what it usually is, and the longest pause that is no more than that. A framework takes as
// long as the machine makes it take, and some times longer where it goes from its forward to its backward pass or to its optimizer: what
// it usually takes here is seen. Where even that is long, the pauses are the program's own work.
struct Way {
  Nanos usual = 0, longest = kLaunchPause;
};
Way way_of(std::vector<Nanos>& pauses) {
  constexpr Nanos kTimes = 8, kLongest = 5 * kLaunchPause;
  if (pauses.empty()) return {};
  const auto middle = pauses.begin() + static_cast<std::ptrdiff_t>(pauses.size() / 2);
  std::nth_element(pauses.begin(), middle, pauses.end());
  const Nanos usual = std::max<Nanos>(0, *middle);
  return {usual, usual > kLaunchPause ? kLaunchPause : std::clamp(kTimes * usual, kLaunchPause, kLongest)};
}

// A call that gives work to a device, or orders it.
bool gives(HostLog::Kind kind) {
  return kind == HostLog::Kind::Launch || kind == HostLog::Kind::Order || kind == HostLog::Kind::Copy;
}

}  // namespace

// Operations in the order of their calls; those of call i are at begins[i] to begins[i + 1].
std::vector<u32> Replay::by_call(std::vector<u32>& begins) const {
  begins.assign(calls_.size() + 1, 0);
  for (const Operation& each : operations_) {
    if (each.call != kNone) ++begins[each.call + 1];
  }
  for (std::size_t i = 0; i < calls_.size(); ++i) begins[i + 1] += begins[i];
  std::vector<u32> operations(begins.back()), next(begins.begin(), begins.end() - 1);
  for (u32 i = 0; i < operations_.size(); ++i) {
    if (operations_[i].call != kNone) operations[next[operations_[i].call]++] = i;
  }
  return operations;
}

void Replay::find_sequences(const JoinedTape& tape, const std::vector<TimelineCopies>& copies) {
  std::vector<u32> begins;
  const std::vector<u32> ordered = by_call(begins);
  const auto operations = [&](u32 call) {
    return std::span(ordered).subspan(begins[call], begins[call + 1] - begins[call]);
  };
  std::vector<Run> runs;
  Run open;
  // What is called behind the last launch is of what comes next, and so is what the host waited for before that.
  const auto end = [&] {
    const auto gave = [&](u32 call) { return gives(calls_[call].kind) || !operations(call).empty(); };
    while (!open.calls.empty() && !gave(open.calls.back())) open.calls.pop_back();
    if (open.launches.size() >= kShort) runs.push_back(std::move(open));
    open = {};
  };
  for (const u32 each : ordered) {
    const bool is_graph = tape.operations[each].kind == OperationKind::Graph;
    launches_ += is_graph || has_place_in_graph(tape, tape.operations[each], copies);
    launches_repeated_ += is_graph;
  }
  for (u32 i = 0; i < calls_.size(); ++i) {
    if (i > 0 && calls_[i].thread != calls_[i - 1].thread) end();
    const HostLog::Kind kind = calls_[i].kind;
    bool fits = kind == HostLog::Kind::Other || kind == HostLog::Kind::Library || gives(kind);
    for (const u32 each : operations(i)) fits = fits && has_place_in_graph(tape, tape.operations[each], copies);
    if (kind == HostLog::Kind::Copy) fits = fits && !operations(i).empty() && !blocks(calls_[i]);
    if (!fits) {
      end();
      continue;
    }
    if (operations(i).empty() && open.launches.empty()) continue;
    for (const u32 each : operations(i)) {
      open.launches.push_back(key_of(tape, tape.operations[each]));
      open.of.push_back(static_cast<u32>(open.calls.size()));
    }
    open.calls.push_back(i);
  }
  end();
  // `what(pause, from, to)` of places in `run.calls`, of which both gave something, from `first` on.
  const auto each_pause = [&](const Run& run, std::size_t first, auto&& what) {
    std::size_t last = first;
    for (std::size_t i = first; i < run.calls.size(); ++i) {
      if (!gives(calls_[run.calls[i]].kind)) continue;
      if (i != last) what(tape.calls[run.calls[i]].begin - tape.calls[run.calls[last]].end, last, i);
      last = i;
    }
  };
  std::vector<Nanos> pauses;
  // Launches that one call of a library makes follow each other at once: they tell nothing of the framework's way.
  constexpr Nanos kOfOneCall = 5'000;
  for (const Run& run : runs)
    each_pause(run, 0, [&](Nanos pause, std::size_t, std::size_t) {
      if (pause > kOfOneCall) pauses.push_back(pause);
    });
  const Way way = way_of(pauses);
  usual_way_ = way.usual;
  std::unordered_map<u64, u64> times;
  for (const Run& run : runs) ++times[run.key()];
  // All calls of the run but the first of each graph.
  const auto mark = [&](const Run& run, std::size_t from, std::size_t graph) {
    launches_repeated_ += run.launches.size() - from;
    std::vector<bool> first(run.calls.size());
    for (std::size_t launch = from; launch < run.launches.size(); launch += graph) first[run.of[launch]] = true;
    for (std::size_t i = run.of[from]; i < run.calls.size(); ++i) {
      Call& call = calls_[run.calls[i]];
      call.in_sequence = !first[i];
      // From a copy, or from the graph before, to a graph's own launch it is the host's way as well.
      const bool follows = run.calls[i] > 0 && !call.first && gives(calls_[run.calls[i] - 1].kind);
      if (!first[i])
        call.in_graph = InGraph::Nothing;
      else if (follows && call.work <= way.longest)
        call.in_graph = InGraph::UsualWay;
      for (const u32 operation : operations(run.calls[i])) operations_[operation].in_sequence = !first[i];
    }
    each_pause(run, run.of[from], [&](Nanos pause, std::size_t last, std::size_t next) {
      if (pause <= way.longest) return;  // else the batch that it waits for in between, which no graph takes
      for (std::size_t k = last + 1; k <= next; ++k) calls_[run.calls[k]].in_graph = InGraph::All;
    });
  };
  for (const Run& run : runs) {
    if (times[run.key()] >= kRepeats) {
      mark(run, 0, run.launches.size());
      continue;
    }
    const Period period = period_of(run.launches);
    if (period.length != 0)
      mark(run, period.from, std::max<std::size_t>(1, (kUnrolled + period.length - 1) / period.length) * period.length);
  }
}

}  // namespace gputrace
