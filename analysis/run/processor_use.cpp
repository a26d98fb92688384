#include "analysis/run/processor_use.h"

#include <cstdlib>
#include <iterator>

namespace gputrace {
namespace {

struct TimeSpan {
  Nanos begin, end;
};

TimeSpan time_of_devices(const ProcessTrace& process) {
  if (process.device.devices.empty()) return {process.begin, process.end};
  TimeSpan span{process.end, process.begin};
  for (const DeviceTimes& device : process.device.devices)
    span = {std::min(span.begin, device.first), std::max(span.end, device.last)};
  return span;
}

// Of a thread of the process itself, evenly between two readings. A thread is not written down while it stands still: it did so until the
// last of `rounds` before it was.
u64 cpu_between(const HostThread& thread, const TimeSpan& span, const std::vector<ThreadReading>& rounds) {
  constexpr Nanos kOfOneRound = 100'000'000;  // the threads of a round are looked at one after the other
  double sum = 0;
  for (std::size_t i = 1; i < thread.readings.size(); ++i) {
    const ThreadReading &before = thread.readings[i - 1], &after = thread.readings[i];
    Nanos from = before.at;
    const auto next = std::lower_bound(rounds.begin(), rounds.end(), after.at - kOfOneRound,
                                       [](const ThreadReading& round, Nanos time) { return round.at < time; });
    if (next != rounds.begin()) from = std::max(from, std::prev(next)->at);
    const Nanos common = std::min(span.end, after.at) - std::max(span.begin, from);
    if (common > 0 && after.cpu_ns > before.cpu_ns)
      sum += static_cast<double>(after.cpu_ns - before.cpu_ns) * static_cast<double>(common) /
             static_cast<double>(after.at - from);
  }
  return static_cast<u64>(sum);
}

// Of the process itself; nullptr: nobody looked at it.
const HostThread* thread_of(const ProcessTrace& process, i32 tid) {
  const auto& threads = process.samples.host_threads;
  const auto own = std::find_if(threads.begin(), threads.end(),
                                [&](const HostThread& thread) { return thread.process == 0 && thread.tid == tid; });
  return own == threads.end() ? nullptr : &*own;
}

}  // namespace

ProcessorUse used_meanwhile(const ProcessTrace& process, const HostThread& thread) {
  const auto& readings = thread.readings;
  const auto nearest = [&](Nanos time) {
    const auto away = [&](const ThreadReading& each) { return std::abs(each.at - time); };
    return *std::min_element(readings.begin(), readings.end(),
                             [&](const auto& a, const auto& b) { return away(a) < away(b); });
  };
  const ProcessorUse life{thread.seen - thread.began, thread.cpu_ns, thread.ready_ns};
  if (readings.empty()) return life;
  const auto [begin, end] = time_of_devices(process);
  ThreadReading from = nearest(begin), to = nearest(end);
  if (to.at <= from.at) {  // a loop between two looks: what lies around it
    from = readings.front(), to = readings.back();
    for (const ThreadReading& each : readings) {
      if (each.at <= begin) from = each;
      if (each.at < end) continue;
      to = each;
      break;
    }
  }
  if (to.at <= from.at || to.ready_ns < from.ready_ns || to.cpu_ns < from.cpu_ns) return life;
  return {to.at - from.at, to.cpu_ns - from.cpu_ns, to.ready_ns - from.ready_ns};
}

u64 cpu_of_unseen(const ProcessTrace& process, i32 tid) {
  const HostThread* const own = thread_of(process, tid);
  const TimeSpan span = time_of_devices(process);
  if (!own || own->seen <= own->began) return 0;
  const Nanos life = own->seen - own->began, part = std::clamp<Nanos>(span.end - span.begin, 0, life);
  return static_cast<u64>(static_cast<double>(process.samples.unseen_cpu_ns) * static_cast<double>(part) /
                          static_cast<double>(life));
}

std::set<i32> callers_of(const ProcessTrace& process) {
  std::set<i32> callers;
  for (const ThreadFacts& thread : process.threads) {
    if (thread.calls != 0) callers.insert(thread.tid);
  }
  return callers;
}

std::optional<u64> callers_ran(const ProcessTrace& process, u64 length) {
  std::set<i32> unseen = callers_of(process);
  double ran = 0;
  for (const HostThread& thread : process.samples.host_threads) {
    if (thread.process != 0 || unseen.erase(thread.tid) == 0) continue;
    const ProcessorUse use = used_meanwhile(process, thread);
    if (use.length <= 0 || static_cast<u64>(use.length) < length / 2) return {};
    ran += static_cast<double>(use.cpu_ns + use.ready_ns) / static_cast<double>(use.length);
  }
  if (!unseen.empty()) return {};
  return ran >= 1 ? length : static_cast<u64>(ran * static_cast<double>(length));
}

std::optional<OthersUse> cpu_of_others(const ProcessTrace& process, i32 tid) {
  const auto& threads = process.samples.host_threads;
  const HostThread* const own = thread_of(process, tid);
  if (!own) return {};
  const TimeSpan span = time_of_devices(process);
  const std::set<i32> callers = callers_of(process);
  OthersUse use;
  for (const HostThread& thread : threads) {
    const bool traces = thread.name.rfind("gputrace-", 0) == 0;
    if (traces || (thread.process == 0 && thread.tid == tid)) continue;
    if (thread.process != 0)
      use.others_ns += thread.cpu_ns;
    else
      (callers.contains(thread.tid) ? use.callers_ns : use.others_ns) += cpu_between(thread, span, own->readings);
  }
  return use;
}

}  // namespace gputrace
