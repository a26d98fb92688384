// Gaps of the timeline: what a device waited for, and which of its gaps are idle for certain.
#include <algorithm>
#include <limits>

#include "analysis/timeline/timeline.h"

namespace gputrace {
namespace {

DeviceClass class_of(const DeviceOperation& operation) {
  if (operation.kind == OperationKind::Copy || operation.kind == OperationKind::Memset) return DeviceClass::Copy;
  return operation.collective ? DeviceClass::Collective : DeviceClass::Compute;
}

bool longer(const IdleGap& a, const IdleGap& b) { return a.length() > b.length(); }

// What the host does while a device waits.
Activity activity_in_gap(IdleCause cause) {
  switch (cause) {
    case IdleCause::Launch:
    case IdleCause::QueueFull:
    case IdleCause::Dispatch:
    case IdleCause::GraphInternal:
      return Activity::Launch;
    case IdleCause::ModuleLoad:
      return Activity::Compilation;
    case IdleCause::Unknown:
    case IdleCause::OtherStream:
    case IdleCause::MemoryValue:
    case IdleCause::Collection:
      return Activity::Unknown;
    default:
      return Activity::Host;
  }
}

}  // namespace

void Timeline::find_gap(DeviceTimes& times, const DeviceOperation& operation, const Joined& joined,
                        const Waited& waited, u32 depth) {
  DeviceTrack& state = devices_[operation.device];
  if (state.sweep.idle_before(operation.start) > 0) end_gap(operation, joined, waited, depth);
  if (joined.call) seen_threads_[joined.call->thread] = 1;
  const bool newest = operation.end >= state.sweep.end();
  if (!state.sweep.add(times, class_of(operation), operation.start, operation.end)) ++activity_.join.late;
  if (newest) state.newest_call = joined.sequence;
}

// The device had nothing to do until the operation began.
[[gnu::noinline]] void Timeline::end_gap(const DeviceOperation& operation, const Joined& joined, const Waited& waited,
                                         u32 depth) {
  DeviceTimes& times = activity_.devices[operation.device];
  DeviceTrack& state = devices_[operation.device];
  IdleGap gap;
  gap.device = times.device, gap.begin = state.sweep.end(), gap.end = operation.start;
  gap.ended_by = static_cast<u8>(operation.kind);
  const GapContext context{gap,   window_.find(state.newest_call), operation, joined.call, waited,
                           depth, intake_.clock_error(),           &overhead_};
  const Nanos usual = waited.behind == Behind::Operations ? 0 : state.dispatch.usual(operation.kind);
  divide_gap(context, log_, usual, division_);
  state.dispatch.add(operation.kind, division_.of(IdleCause::Dispatch));
  gap.parts = division_.parts();
  gap.between_launches = division_.between_launches();
  gap.pause = division_.longest_pause();
  gap.call = division_.call_to_blame();
  if (joined.call) {
    gap.origin = joined.call->stack;
    gap.thread = joined.call->thread;
    gap.called = std::clamp(joined.call->begin, gap.begin, gap.end);
    gap.ended_by_new = seen_threads_[gap.thread] == 0;
  }
  log_gap(gap, state.dispatch);
  if (state.lost.hold(gap, division_.pieces())) {
    const Nanos half = state.lost.half();
    give_up_unheard(half);
    settle_gaps(operation.device, half);
  }
}

// Before then a device cannot have begun with it.
Nanos Timeline::earliest_start(const HostOperation& call) const {
  Nanos earliest = std::max(call.begin, window_.ended(call.stream).end);
  window_.for_each_wait(call, [&](u32 sequence) {
    if (const HostOperation* before = window_.find(sequence)) earliest = std::max(earliest, before->device_end);
  });
  return earliest;
}

// Nothing was heard of that operation, nor perhaps of others after it; `end`: when the next of its stream began that was
// told of.
[[gnu::noinline]] void Timeline::lost_before(const HostOperation& first, Nanos end) {
  const i32 ordinal = targets_.device_of(window_.streams().context(first.stream));
  const Nanos begin = earliest_start(first);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (ordinal < 0 || activity_.devices[i].device == ordinal) devices_[i].lost.may_have_run(begin, end);
  }
}

// What nothing was heard of by now counts as lost for the gaps that end by `until`.
void Timeline::give_up_unheard(Nanos until) {
  window_.for_each_unheard([&](const HostOperation& call) { lost_before(call, until); });
}

void Timeline::settle_gaps(u32 device, Nanos until) {
  DeviceTimes& times = activity_.devices[device];
  devices_[device].lost.settle(until, [&](const LostWork::Held& held, bool unknown) {
    const IdleGap& gap = held.gap;
    if (!unknown) {
      count_parts(times, held);
      devices_[device].kept_dispatch.add(static_cast<OperationKind>(gap.ended_by),
                                         gap.parts[static_cast<unsigned>(IdleCause::Dispatch)]);
      keep_gap(times, gap);
      if (witness_) witness_->idled(gap);
      if (gap.pause.length > 0)
        facts_.pauses.add(gap.pause.after, gap.pause.before, static_cast<u64>(gap.pause.length));
      StackDeviceTimes& before = entry_at(facts_.stacks, gap.origin);
      before.idle_ns += gap.length();
      before.host_ns += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Host)]);
      before.launch_ns += static_cast<u64>(gap.parts[static_cast<unsigned>(IdleCause::Launch)] + gap.between_launches);
      return;
    }
    if (sums_) activities_.add(gap.begin, gap.end, Activity::Unknown);
    ++times.unknown_gaps;
    times.unknown_ns += gap.length();
    times.idle_ns -= std::min(times.idle_ns, gap.length());
  });
}

void Timeline::count_parts(DeviceTimes& times, const LostWork::Held& held) {
  ++times.gaps;
  const auto add = [](IdleSum& sum, Nanos length) {
    ++sum.count;
    sum.total_ns += static_cast<u64>(length);
  };
  for (unsigned i = 0; i < kIdleCauses; ++i) {
    if (held.gap.parts[i] != 0) add(times.causes[i], held.gap.parts[i]);
  }
  if (held.gap.between_launches != 0) add(times.between_launches, held.gap.between_launches);
  if (const Nanos host = held.gap.parts[static_cast<unsigned>(IdleCause::Host)]; host != 0 && held.gap.ended_by_new)
    add(times.before_new_threads, host);
  auto& by_call = times.causes_by_call;
  for (const GapDivision::Piece& piece : held.pieces) {
    if (piece.call == 0) continue;
    const auto same = [&](const IdleByCall& known) { return known.call == piece.call && known.cause == piece.cause; };
    auto known = std::find_if(by_call.begin(), by_call.end(), same);
    if (known == by_call.end()) known = by_call.insert(known, {piece.call, piece.cause, {}});
    add(known->sum, piece.length);
  }
}

// Dispatch beyond ten times what is usual in this run is none: what it was is not known.
void Timeline::limit_dispatch() {
  DispatchTimes all;
  for (const DeviceTrack& device : devices_) all.add(device.kept_dispatch);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    DeviceTimes& times = activity_.devices[i];
    IdleSum& dispatch = times.causes[static_cast<unsigned>(IdleCause::Dispatch)];
    IdleSum& unknown = times.causes[static_cast<unsigned>(IdleCause::Unknown)];
    for (unsigned k = 0; k < 4; ++k) {
      const auto kind = static_cast<OperationKind>(k);
      const IdleSum beyond = devices_[i].kept_dispatch.beyond(kind, all.limit(kind));
      dispatch.total_ns -= beyond.total_ns;
      unknown.total_ns += beyond.total_ns;
      unknown.count += beyond.count;
    }
    for (IdleGap& gap : times.longest) {
      Nanos& part = gap.parts[static_cast<unsigned>(IdleCause::Dispatch)];
      const Nanos beyond = part - all.limit(static_cast<OperationKind>(gap.ended_by));
      if (beyond <= 0) continue;
      part -= beyond;
      gap.parts[static_cast<unsigned>(IdleCause::Unknown)] += beyond;
    }
  }
}

void Timeline::keep_gap(DeviceTimes& times, const IdleGap& gap) {
  auto& longest = times.longest;  // a heap with the shortest on top
  if (longest.size() == DeviceTimes::kGapsKept && !longer(gap, longest.front())) return;
  if (longest.size() == DeviceTimes::kGapsKept) {
    std::pop_heap(longest.begin(), longest.end(), longer);
    longest.back() = gap;
  } else {
    longest.push_back(gap);
  }
  std::push_heap(longest.begin(), longest.end(), longer);
}

// The newest division is the gap's. The device's own way beyond what is usual so far is none, as in limit_dispatch(): launching is not what it takes.
void Timeline::log_gap(const IdleGap& gap, const DispatchTimes& dispatch) {
  if (!sums_) return;
  Nanos at = gap.begin;
  for (const GapDivision::Piece& piece : division_.in_order()) {
    const Nanos end = at + piece.length;
    const bool late = piece.cause == IdleCause::Dispatch && piece.length > DispatchTimes::kShortestLimit;
    const Nanos from = late ? std::min(end, at + dispatch.limit(static_cast<OperationKind>(gap.ended_by))) : end;
    activities_.add(at, from, activity_in_gap(piece.cause), piece.call);
    if (from < end) activities_.add(from, end, Activity::Unknown, piece.call);
    at = end;
  }
}

// All were heard of; the longest come first.
void Timeline::finish_gaps(u32 device) {
  settle_gaps(device, std::numeric_limits<Nanos>::max());
  std::vector<IdleGap>& longest = activity_.devices[device].longest;
  std::sort(longest.begin(), longest.end(), longer);
}

}  // namespace gputrace
