#include "analysis/timeline/gap_cause.h"

#include <algorithm>

namespace gputrace {
namespace {

// The order decides between equal parts.
constexpr IdleCause kOrder[] = {IdleCause::Collection, IdleCause::OtherStream,     IdleCause::ModuleLoad,
                                IdleCause::Allocation, IdleCause::Synchronization, IdleCause::Copy,
                                IdleCause::HostLate,   IdleCause::QueueFull,       IdleCause::Launch,
                                IdleCause::Dispatch};

bool blocks(HostLog::Kind kind) {
  return kind == HostLog::Kind::Module || kind == HostLog::Kind::Allocation || kind == HostLog::Kind::Synchronization ||
         kind == HostLog::Kind::Copy;
}

IdleCause cause_of(HostLog::Kind kind) {
  switch (kind) {
    case HostLog::Kind::Module:
      return IdleCause::ModuleLoad;
    case HostLog::Kind::Allocation:
      return IdleCause::Allocation;
    case HostLog::Kind::Synchronization:
      return IdleCause::Synchronization;
    case HostLog::Kind::Copy:
      return IdleCause::Copy;
    case HostLog::Kind::Launch:
    case HostLog::Kind::Order:
      return IdleCause::Launch;
    default:
      return IdleCause::HostLate;
  }
}

class Parts {
 public:
  void add(IdleCause cause, Nanos length, u16 call) {
    if (length <= 0) return;
    Part& part = parts_[static_cast<unsigned>(cause)];
    part.length += length;
    if (length > part.longest) part.longest = length, part.call = call;
    for (Share& share : part.shares) {
      if (share.length != 0 && share.call != call) continue;
      share = {call, share.length + length};
      break;
    }
  }
  // Unknown where nothing was added.
  IdleVerdict largest(Nanos gap) const {
    IdleVerdict verdict;
    Nanos most = 0;
    for (const IdleCause cause : kOrder) {
      const Part& part = parts_[static_cast<unsigned>(cause)];
      const Nanos length = std::min(part.length, gap);
      if (length > most) most = length, verdict = {cause, part.call, length, std::min(part.of_call(), length)};
    }
    return verdict;
  }

 private:
  struct Share {
    u16 call = 0;
    Nanos length = 0;
  };
  struct Part {
    Nanos length = 0, longest = 0;
    u16 call = 0;     // of the longest
    Share shares[4];  // by call; a fifth one is to blame for its longest alone

    Nanos of_call() const {
      for (const Share& share : shares) {
        if (share.call == call && share.length != 0) return share.length;
      }
      return longest;
    }
  };
  Part parts_[kIdleCauses];
};

// How much of [begin, end) was the thread's own doing; the rest was overhead and is added as such. `call`: the one that
// it was in; 0: none, and then overhead of an untold thread is another's.
Nanos without_overhead(const GapContext& context, Nanos begin, Nanos end, u16 call, Parts& parts) {
  Nanos rest = std::max<Nanos>(0, end - begin);
  if (!context.overhead) return rest;
  context.overhead->between(context.next_call->thread, call != 0, begin, end, [&](IdleCause cause, Nanos length) {
    parts.add(cause, length, cause == IdleCause::Collection ? u16{0} : call);
    rest -= length;
  });
  return rest;
}

// What the thread did from the gap's begin until it called.
void before_the_call(const GapContext& context, const HostLog& log, Parts& parts) {
  const Nanos begin = context.gap.begin;
  const Nanos called = std::clamp(context.next_call->begin, begin, context.gap.end);
  Nanos in_calls = 0, host = 0, done_until = begin;
  // A wait returns after what it waited for: one that seems to end just before the gap is off by the clock's error.
  log.between(context.next_call->thread, begin - context.clock_error, called, [&](const HostLog::Entry& entry) {
    const Nanos inside = std::max<Nanos>(0, std::min(entry.end, called) - std::max(entry.begin, begin));
    in_calls += inside;
    host += without_overhead(context, done_until, std::min(entry.begin, called), 0, parts);
    done_until = std::max(done_until, std::min(entry.end, called));
    // The call that holds the next operation's own has not returned by then: what it does later is no cause.
    const bool done = entry.end <= called;
    const bool whole = done && blocks(entry.kind);
    const Nanos from = whole ? entry.begin : std::max(entry.begin, begin);
    parts.add(cause_of(entry.kind), without_overhead(context, from, std::min(entry.end, called), entry.inner, parts),
              entry.inner);
  });
  if (in_calls == 0 && log.forgotten() != 0) return;  // what it did is not remembered
  parts.add(IdleCause::HostLate, host + without_overhead(context, done_until, called, 0, parts), 0);
}

// From the call to the start on the device.
void since_the_call(const GapContext& context, Parts& parts) {
  const HostOperation& call = *context.next_call;
  const IdleGap& gap = context.gap;
  const Nanos called = std::clamp(call.begin, gap.begin, gap.end);
  const bool waited = context.waited_for > call.end && gap.end - call.begin > kLaunchWay;
  if (!waited) {
    const bool copies = call.kind == OperationKind::Copy || call.kind == OperationKind::Memset;
    const bool full = context.queue_depth >= LaunchTimes::kFullQueue;
    const Nanos returned = std::clamp(call.end, called, gap.end);
    const Nanos own = without_overhead(context, called, returned, call.call, parts) + (gap.end - returned);
    parts.add(copies ? IdleCause::Copy : full ? IdleCause::QueueFull : IdleCause::Launch, own, call.call);
    return;
  }
  const Nanos free = std::clamp(context.waited_for, gap.begin, gap.end);
  if (free > gap.begin + context.clock_error) parts.add(IdleCause::OtherStream, free - gap.begin, call.call);
  if (gap.end - free <= kDispatch) parts.add(IdleCause::Dispatch, gap.end - free, 0);
}

}  // namespace

IdleVerdict judge_gap(const GapContext& context, const HostLog& log) {
  if (!context.next_call) return {};
  const HostOperation& call = *context.next_call;
  if (context.previous_call == context.next_call && call.kind == OperationKind::Graph)
    return {IdleCause::GraphInternal, call.call, context.gap.end - context.gap.begin,
            context.gap.end - context.gap.begin};
  Parts parts;
  before_the_call(context, log, parts);
  since_the_call(context, parts);
  return parts.largest(context.gap.end - context.gap.begin);
}

}  // namespace gputrace
