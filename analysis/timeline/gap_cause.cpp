#include "analysis/timeline/gap_cause.h"

#include <algorithm>

namespace gputrace {
namespace {

IdleCause cause_of(HostLog::What what) {
  switch (what) {
    case HostLog::What::Module:
      return IdleCause::ModuleLoad;
    case HostLog::What::Allocation:
      return IdleCause::Allocation;
    case HostLog::What::Synchronization:
      return IdleCause::Synchronization;
    case HostLog::What::Copy:
      return IdleCause::Copy;
    case HostLog::What::Launch:
      return IdleCause::Launch;
    default:
      return IdleCause::HostLate;
  }
}

}  // namespace

// The cause with the largest part of the gap: what the launching thread was in before the next operation's call, then
// that call and its way to the device.
IdleVerdict judge_gap(const GapContext& context, const HostLog& log) {
  if (!context.next_call) return {};
  const HostOperation& call = *context.next_call;
  const bool within_graph = context.previous_call == context.next_call && call.kind == OperationKind::Graph;
  if (within_graph) return {IdleCause::GraphInternal, call.call};
  const IdleGap& gap = context.gap;
  const Nanos called = std::clamp(call.begin, gap.begin, gap.end);
  Nanos parts[kIdleCauses] = {};
  Nanos longest[kIdleCauses] = {};
  u16 blamed[kIdleCauses] = {};
  const auto add = [&](IdleCause cause, Nanos length, u16 id) {
    const auto index = static_cast<unsigned>(cause);
    parts[index] += length;
    if (length > longest[index]) longest[index] = length, blamed[index] = id;
  };
  Nanos in_calls = 0;
  log.between(call.thread, gap.begin, called, [&](const HostLog::Entry& entry) {
    const Nanos length = std::min(entry.end, called) - std::max(entry.begin, gap.begin);
    in_calls += length;
    add(cause_of(entry.what), length, entry.inner);
  });
  add(IdleCause::HostLate, called - gap.begin - in_calls, 0);
  add(IdleCause::Launch, gap.end - called, call.call);
  const auto* most = std::max_element(std::begin(parts), std::end(parts));
  if (*most <= 0) return {};
  const auto index = static_cast<std::size_t>(most - parts);
  return {static_cast<IdleCause>(index), blamed[index]};
}

}  // namespace gputrace
