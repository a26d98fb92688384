// Memory that a loop takes and does not give back.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/advice.h"
#include "analysis/findings/rules.h"
#include "analysis/kernels/kernel_rows.h"
#include "analysis/lines/sites.h"
#include "analysis/run/devices.h"
#include "analysis/run/quality.h"
#include "analysis/steps/find_steps.h"
#include "analysis/words/human.h"

namespace gputrace {
namespace {

constexpr u64 kLeastBytes = 16u << 20;
constexpr double kLeastGrowth = 0.1;  // of what is in use at the end of the loop
constexpr double kMostTold = 1e18;    // of bytes or steps, whatever a file says
constexpr unsigned kParts = 6;        // of the loop's time: the lowest level of each is above that of the one before

// The lowest level of each part; what was in use at its begin counts. `bytes`: the member of a sample that is the level.
template <typename Sample>
std::array<u64, kParts> lowest_levels(const std::vector<Sample>& samples, u64 Sample::*bytes, Nanos first, Nanos last) {
  std::array<u64, kParts> lowest;
  lowest.fill(~u64{0});
  const auto part_of = [&](Nanos at) {
    return std::min<u64>(kParts - 1, static_cast<u64>(at - first) * kParts / static_cast<u64>(last - first));
  };
  u64 level = 0;
  u64 part = 0;
  lowest[0] = ~u64{0};
  for (const Sample& sample : samples) {
    if (sample.at > last) break;
    const u64 here = sample.at <= first ? 0 : part_of(sample.at);
    for (; part < here; ++part) lowest[part + 1] = level;
    level = sample.*bytes;
    if (sample.at <= first)
      lowest[0] = level;
    else
      lowest[here] = std::min(lowest[here], level);
  }
  for (; part + 1 < kParts; ++part) lowest[part + 1] = level;
  return lowest;
}

struct GrowthSpan {
  Nanos first = 0, last = 0;
};

// The steps, or else from the first allocation between launches to the last, unless most launches follow: then something was loaded piece by
// piece (a model), and is used.
std::optional<GrowthSpan> loop_in(const ProcessTrace& process) {
  const AllocationLoop& own = process.allocation_loop;
  if (own.between_launches < kLoopTimes || !process.ledger_complete) return std::nullopt;
  GrowthSpan loop{own.first, own.last};
  if (const auto steps = loop_of(process.steps)) {
    loop = {steps->called_from, steps->called_to};
  } else {
    const u64 following = process.plain_launches + process.graph_launches - own.launches_at_last;
    if (own.launches_at_last - own.launches_at_first < following) return std::nullopt;
  }
  if (loop.last <= loop.first) return std::nullopt;
  return loop;
}

// Of what was left at the end, the largest part that the loop allocated.
const LiveMemory* kept_by(const GrowthSpan& loop, const ProcessTrace& process, i32 device) {
  const auto& live = process.live_memory;
  const auto found = std::find_if(live.begin(), live.end(), [&](const LiveMemory& each) {
    return each.device == device && each.newest >= loop.first;
  });
  return found == live.end() ? nullptr : &*found;
}

std::string call_of(const ProcessTrace& process, u16 id) {
  for (const CallFacts& call : process.calls) {
    if (call.id == id) return call.name;
  }
  return "";
}

std::string told(const ProcessTrace& process, const LiveMemory& kept) {
  std::string text = fmt::format("; most of what is left: {} block{} of {} in all by {}", human_count(kept.count),
                                 kept.count == 1 ? "" : "s", human_bytes(kept.bytes), call_of(process, kept.call));
  if (kept.function != kNone) text += ", after kernel " + name_of(process.functions[kept.function]).brief;
  return text +
         fmt::format(", {} to {} old", human_nanos(process.end - kept.newest), human_nanos(process.end - kept.oldest));
}

void add_evidence(const ProcessTrace& process, const LiveMemory& kept, Finding& finding) {
  finding.site = site_of_origin(process.lines, kept.origin, FileNames(process));
  finding.evidence.emplace_back("call", call_of(process, kept.call));
  if (kept.function != kNone)
    finding.evidence.emplace_back("after_kernel", name_of(process.functions[kept.function]).brief);
  finding.evidence.emplace_back("blocks", number(kept.count));
  finding.evidence.emplace_back("block_bytes", number(kept.bytes));
  finding.evidence.emplace_back("oldest_ns", number(static_cast<u64>(process.end - kept.oldest)));
  finding.evidence.emplace_back("newest_ns", number(static_cast<u64>(process.end - kept.newest)));
}

// 0: it does not grow all through the loop.
template <typename Sample>
u64 growth_in(const GrowthSpan& loop, const std::vector<Sample>& samples, u64 Sample::*bytes) {
  const auto lowest = lowest_levels(samples, bytes, loop.first, loop.last);
  for (unsigned i = 1; i < kParts; ++i) {
    if (lowest[i] <= lowest[i - 1]) return 0;
  }
  const u64 grown = lowest[kParts - 1] - lowest[0];
  const bool is_little =
      grown < kLeastBytes || static_cast<double>(grown) < kLeastGrowth * static_cast<double>(lowest[kParts - 1]);
  return is_little ? 0 : grown;
}

u64 growth_in(const GrowthSpan& loop, const DeviceMemory& memory) {
  return growth_in(loop, memory.samples, &MemorySample::bytes);
}

// Of what was live at the peak, what the loop allocated bit by bit: what it makes anew in each step, and gives back, is of one step only,
// however large (a cache that grows by a copy).
struct KeptTensors {
  u64 bytes = 0, count = 0;
  double bytes_a_step = 0;
  const TensorPart* most = nullptr;  // of them
};

// From the one in which the first was allocated to that of the last.
u64 steps_with(const TensorPart& part, const std::vector<Step>& steps) {
  const auto begun_at = [&](Nanos at) {
    const auto later = std::partition_point(steps.begin(), steps.end(), [at](const Step& step) {
      return (step.called_to != 0 ? step.called_from : step.begin) <= at;
    });
    return static_cast<u64>(later - steps.begin());
  };
  const u64 first = std::max<u64>(1, begun_at(part.oldest)), last = std::max(first, begun_at(part.newest));
  return last - first + 1;
}

KeptTensors tensors_kept(const StepFacts& facts, const GrowthSpan& loop, const FrameworkMemory& memory) {
  KeptTensors kept;
  for (const TensorPart& part : memory.at_peak) {
    const Nanos since = std::max(part.oldest, loop.first);
    if (part.count < kLoopTimes || part.bytes == 0) continue;
    if (part.newest <= since || part.newest - since < (loop.last - loop.first) / 2) continue;
    kept.bytes += part.bytes, kept.count += part.count;
    kept.bytes_a_step += static_cast<double>(part.bytes) / static_cast<double>(steps_with(part, facts.steps));
    if (!kept.most || part.bytes > kept.most->bytes) kept.most = &part;
  }
  return kept;
}

struct TensorGrowth {
  u64 bytes = 0;  // 0: none
  KeptTensors kept;
};

// Of what PyTorch has given out; it takes from the driver more than it needs, and seldom.
TensorGrowth growth_of_tensors(const ProcessTrace& process, const FrameworkMemory& memory) {
  const auto steps = loop_of(process.steps);
  if (!steps || !process.ledger_complete || steps->called_to <= steps->called_from) return {};
  const GrowthSpan loop{steps->called_from, steps->called_to};
  TensorGrowth growth{0, tensors_kept(process.steps, loop, memory)};
  if (growth.kept.most) growth.bytes = growth_in(loop, memory.samples, &TensorSample::allocated);
  return growth;
}

u64 growth_of_tensors(const ProcessTrace& process, i32 device) {
  for (const FrameworkMemory& memory : process.tensors)
    if (memory.device == device) return growth_of_tensors(process, memory).bytes;
  return 0;
}

// How many more steps there is memory for; nothing: the device's is not known.
std::optional<u64> steps_until_full(const ProcessTrace& process, const FrameworkMemory& memory, double bytes_a_step) {
  const Device* const device = DeviceMap::facts(process, memory.device);
  if (!device || device->memory_bytes <= memory.reserved) return std::nullopt;
  return static_cast<u64>(
      std::min(kMostTold, static_cast<double>(device->memory_bytes - memory.reserved) / bytes_a_step));
}

// With two digits.
std::string about(u64 count) {
  u64 unit = 1;
  while (count / unit >= 100) unit *= 10;
  return human_count((count + unit / 2) / unit * unit);
}

void judge_tensors(const ProcessTrace& process, const FrameworkMemory& memory, Findings& found) {
  const TensorGrowth growth = growth_of_tensors(process, memory);
  if (growth.bytes == 0) return;
  const double bytes_a_step = std::min(growth.kept.bytes_a_step, kMostTold);
  const TensorPart& most = *growth.kept.most;
  const std::string operation = allocation_of_origin(process.lines, most.origin);
  const auto left = steps_until_full(process, memory, bytes_a_step);
  Finding finding{
      "memory-growth",
      Severity::Warning,
      "memory-peak",
      fmt::format(
          "{}: what PyTorch has given out of device {}'s memory grows all through the loop, by {} a step, and is "
          "not given back: {} in {} tensors are kept{}{}{}",
          name_of(process), memory.device, human_bytes(static_cast<u64>(bytes_a_step)), human_bytes(growth.kept.bytes),
          human_count(growth.kept.count),
          most.bytes < growth.kept.bytes ? ", most of it " + human_bytes(most.bytes) : "",
          operation.empty() ? "" : (most.bytes < growth.kept.bytes ? " made by " : ", made by ") + operation,
          left ? fmt::format("; at that rate the device is full after some {} more steps", about(*left)) : ""),
      advise(Advice::KeepNothing, process),
      {{"device", static_cast<i64>(memory.device)},
       {"grown_bytes", number(growth.bytes)},
       {"bytes_per_step", bytes_a_step},
       {"tensors", number(growth.kept.count)},
       {"tensor_bytes", number(growth.kept.bytes)},
       {"most_bytes", number(most.bytes)},
       {"operation", operation},
       {"steps_until_full", left ? number(*left) : Value{}},
       {"pid", static_cast<i64>(process.who.pid)}}};
  finding.site = site_of_origin(process.lines, most.origin, FileNames(process));
  found.push_back(std::move(finding));
}

void judge_memory(const ProcessTrace& process, const GrowthSpan& loop, const DeviceMemory& memory, Findings& found) {
  const u64 grown = growth_in(loop, memory);
  if (grown == 0 || growth_of_tensors(process, memory.device) != 0) return;  // which says more
  const LiveMemory* kept = kept_by(loop, process, memory.device);
  const double seconds = static_cast<double>(loop.last - loop.first) / 1e9;
  Finding finding{
      "memory-growth",
      Severity::Warning,
      "memory",
      fmt::format("{}: what is in use of device {}'s memory grows all through the loop, by {} in {}, and is "
                  "not given back",
                  name_of(process), memory.device, human_bytes(grown), human_nanos(loop.last - loop.first)) +
          (kept ? told(process, *kept) : ""),
      advise(Advice::KeepNothing, process),
      {{"device", static_cast<i64>(memory.device)},
       {"grown_bytes", number(grown)},
       {"bytes_per_second", static_cast<double>(grown) / seconds},
       {"live_at_end_bytes", number(memory.live_bytes)},
       {"pid", static_cast<i64>(process.who.pid)}}};
  if (kept) add_evidence(process, *kept, finding);
  found.push_back(std::move(finding));
}

void find_memory_growth(const LoadedRun& run, Findings& found) {
  for (const ProcessTrace& process : run.processes) {
    for (const FrameworkMemory& memory : process.tensors) judge_tensors(process, memory, found);
    const auto loop = loop_in(process);
    if (!loop) continue;
    for (const DeviceMemory& memory : process.device_memory) judge_memory(process, *loop, memory, found);
  }
}

}  // namespace

u64 growth_of_memory(const ProcessTrace& process, i32 device) {
  if (const u64 of_tensors = growth_of_tensors(process, device)) return of_tensors;
  const auto loop = loop_in(process);
  for (const DeviceMemory& memory : process.device_memory)
    if (loop && memory.device == device) return growth_in(*loop, memory);
  return 0;
}

extern constexpr FindingRule memory_growth_rule = {
    .findings = {{"memory-growth", "memory that a loop takes and does not give back"}},
    .needs = {Need::Calls},
    .find = find_memory_growth,
};

}  // namespace gputrace
