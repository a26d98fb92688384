#include "analysis/gaps/gap_division.h"

#include <algorithm>

namespace gputrace {
namespace {

IdleCause cause_of(HostLog::Kind kind) {
  switch (kind) {
    case HostLog::Kind::Module:
      return IdleCause::ModuleLoad;
    case HostLog::Kind::Allocation:
      return IdleCause::Allocation;
    case HostLog::Kind::Synchronization:
      return IdleCause::Synchronization;
    case HostLog::Kind::Query:
      return IdleCause::Polling;
    case HostLog::Kind::Copy:
      return IdleCause::Copy;
    case HostLog::Kind::Library:
      return IdleCause::Library;
    case HostLog::Kind::Launch:
    case HostLog::Kind::Order:
      return IdleCause::Launch;
    case HostLog::Kind::Other:
      break;
  }
  return IdleCause::Host;
}

// [begin, end) is the thread's own doing, but for what was overhead; returns the former's length. `call`: the one that it was
// in; 0: none, and then overhead of an untold thread is another's.
Nanos spend(const GapContext& context, Nanos begin, Nanos end, IdleCause cause, u16 call, GapDivision& division) {
  Nanos rest = std::max<Nanos>(0, end - begin);
  if (rest == 0) return 0;
  if (context.overhead) {
    context.overhead->between(context.next_call->thread, call != 0, begin, end, [&](IdleCause held, Nanos length) {
      division.add(held, length, held == IdleCause::Collection ? u16{0} : call);
      rest -= length;
    });
  }
  division.add(cause, rest, call);
  return rest;
}

bool is_launch(HostLog::Kind kind) { return kind == HostLog::Kind::Launch || kind == HostLog::Kind::Order; }

// What the host does between two calls that act: whether it lies between launches shows when the next one comes.
class Pause {
 public:
  explicit Pause(const HostLog::Entry* last) {
    if (last) acted(*last);
  }
  void acted(const HostLog::Entry& entry) {
    since_ = entry.end, after_launch_ = is_launch(entry.kind), host_ = 0;
    after_ = entry.origin;
  }
  void add(Nanos length) { host_ += length; }
  HostPause until(u32 before) const { return {host_, after_, before}; }
  // What it was, if a launch follows at `time`.
  Nanos until_launch(Nanos time) const { return after_launch_ && time - since_ <= kLaunchPause ? host_ : 0; }

 private:
  Nanos since_ = 0, host_ = 0;
  bool after_launch_ = false;
  u32 after_ = 0;
};

// What the thread did from the gap's begin until it called.
void before_the_call(const GapContext& context, const HostLog& log, Nanos called, GapDivision& division) {
  const Nanos begin = context.gap.begin;
  Pause pause(log.acted_before(context.next_call->thread, begin));
  Nanos done = begin;
  bool seen = false;
  log.between(context.next_call->thread, begin, called, [&](const HostLog::Entry& entry) {
    seen = true;
    const Nanos from = std::max(entry.begin, done), to = std::min(entry.end, called);
    pause.add(spend(context, done, std::min(from, called), IdleCause::Host, 0, division));
    const Nanos within = spend(context, from, to, cause_of(entry.kind), entry.inner, division);
    if (entry.kind == HostLog::Kind::Other) pause.add(within);
    if (HostLog::acts(entry.kind)) {
      division.add_pause(pause.until(entry.origin));
      if (is_launch(entry.kind)) division.add_between_launches(pause.until_launch(entry.begin));
      pause.acted(entry);
    }
    done = std::max(done, to);
  });
  // What it did may be forgotten.
  const IdleCause cause = !seen && log.forgotten() != 0 ? IdleCause::Unknown : IdleCause::Host;
  pause.add(spend(context, done, called, cause, 0, division));
  if (cause == IdleCause::Host) division.add_pause(pause.until(context.next_call->stack));
  const OperationKind kind = context.next_call->kind;
  const bool launch = kind == OperationKind::Kernel || kind == OperationKind::Graph;
  if (launch && cause == IdleCause::Host) division.add_between_launches(pause.until_launch(context.next_call->begin));
}

IdleCause cause_of_launch(const GapContext& context) {
  const OperationKind kind = context.next_call->kind;
  if (kind == OperationKind::Copy || kind == OperationKind::Memset) return IdleCause::Copy;
  return context.queue_depth >= LaunchTimes::kFullQueue ? IdleCause::QueueFull : IdleCause::Launch;
}

// From the launch's return to the start on the device.
void since_the_call(const GapContext& context, Nanos returned, Nanos usual_dispatch, GapDivision& division) {
  const Nanos end = context.gap.end;
  const Nanos free = std::clamp(context.waited.until, returned, end);
  const bool peer = context.waited.device != kNone && context.waited.device != context.next.device;
  division.add(peer ? IdleCause::Peer : IdleCause::OtherStream, free - returned, context.next_call->call);
  if (context.waited.behind == Behind::Operations) return division.add(IdleCause::Dispatch, end - free, 0);
  const Nanos dispatch = std::min(usual_dispatch, end - free);
  const bool function = context.waited.behind == Behind::HostFunction;
  division.add(function ? IdleCause::HostFunction : IdleCause::MemoryValue, end - free - dispatch, 0);
  division.add(IdleCause::Dispatch, dispatch, 0);
}

}  // namespace

u16 GapDivision::call_to_blame() const {
  IdleParts parts = parts_;
  parts[static_cast<unsigned>(IdleCause::Unknown)] = parts[static_cast<unsigned>(IdleCause::Dispatch)] = 0;
  const auto cause = static_cast<IdleCause>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  const Piece* most = nullptr;
  for (const Piece& piece : pieces_) {
    if (piece.cause == cause && piece.call != 0 && (!most || piece.length > most->length)) most = &piece;
  }
  return most ? most->call : u16{0};
}

void divide_gap(const GapContext& context, const HostLog& log, Nanos usual_dispatch, GapDivision& division) {
  division.clear();
  const IdleGap& gap = context.gap;
  const Nanos length = gap.end - gap.begin;
  if (!context.next_call) return division.add(IdleCause::Unknown, length, 0);
  const HostOperation& call = *context.next_call;
  if (context.previous_call == context.next_call && call.kind == OperationKind::Graph)
    return division.add(IdleCause::GraphInternal, length, call.call);
  if (length < context.clock_error && call.end > gap.begin - context.clock_error)
    return division.add(IdleCause::Unknown, length, 0);
  const Nanos called = std::clamp(call.begin, gap.begin, gap.end);
  const Nanos returned = std::clamp(call.end, called, gap.end);
  before_the_call(context, log, called, division);
  spend(context, called, returned, cause_of_launch(context), call.call, division);
  since_the_call(context, returned, usual_dispatch, division);
}

}  // namespace gputrace
