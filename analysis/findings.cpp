#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/quality.h"
#include "analysis/render/render.h"

namespace gputrace {
namespace {

using Findings = std::vector<Finding>;

// Gates: below them a pattern is start-up, not a loop.
constexpr u64 kLoopTimes = 16;            // times that work was launched between two such calls
constexpr u64 kPageableBytes = 1u << 20;  // pageable asynchronous copies of less in all are worth a hint, not a warning
constexpr double kCostlyShare = 0.01;     // of the wall time: below it a pattern is worth a hint, not a warning

double seconds(const LoadedTrace& trace) { return static_cast<double>(trace.wall_end - trace.wall_begin) / 1e9; }
double per_second(u64 count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

// The next power of two above four times what it was: a ring that was full is rarely full by a little.
std::string buffer_fix(const ProcessTrace& process) {
  u64 bytes = 16u << 20;
  const auto option = process.options.find("buffer_bytes");
  if (option != process.options.end()) {
    u64 value = 0;
    for (const char c : option->second)
      value = c >= '0' && c <= '9' && value < (1ull << 50) ? value * 10 + static_cast<u64>(c - '0') : value;
    if (value) bytes = value;
  }
  u64 wanted = 1u << 20;
  while (wanted < bytes * 4) wanted *= 2;
  return fmt::format("GPUTRACE_BUFFER={}M", wanted >> 20);
}

void dropped_records(const LoadedTrace& trace, Findings& found) {
  for (const ProcessTrace& process : trace.processes) {
    if (process.dropped == 0) continue;
    Finding finding;
    finding.id = "dropped-records";
    finding.severity = Severity::Warning;
    finding.section = "quality";
    finding.text = fmt::format("{} of {} records of {} were dropped ({}): counts and sums below are lower bounds",
                               process.dropped, process.seen, name_of(process), drop_reasons(process.dropped_by));
    const u64 full = process.dropped_by[static_cast<u32>(DropReason::RingFull)];
    const u64 disk = process.dropped_by[static_cast<u32>(DropReason::Disk)];
    const u64 slots = process.dropped_by[static_cast<u32>(DropReason::NoSlot)];
    const u64 most = std::max({full, disk, slots});
    if (most && most == full)
      finding.fix = buffer_fix(process) + ", or trace less of it: --duration, --capture profiler-api";
    else if (most && most == disk)
      finding.fix = "more room on the disk, or a larger GPUTRACE_MAX_SIZE";
    else if (most)
      finding.fix = buffer_fix(process) + " (a larger segment has more thread slots)";
    finding.evidence = {{"dropped", number(process.dropped)},
                        {"seen", number(process.seen)},
                        {"pid", static_cast<i64>(process.who.pid)},
                        {"reasons", drop_reasons(process.dropped_by)}};
    found.push_back(std::move(finding));
  }
}

void damaged_file(const LoadedTrace& trace, Findings& found) {
  for (const std::string& unread : trace.unread) {
    found.push_back({"unread-file", Severity::Problem, "quality-notes", unread, "", {}});
  }
  for (const ProcessTrace& process : trace.processes) {
    if (!process.damage.empty()) {
      const std::string more =
          process.damage.size() > 1 ? fmt::format(" (and {} more, see quality-notes)", process.damage.size() - 1) : "";
      found.push_back(
          {"damaged-file",
           Severity::Problem,
           "quality-notes",
           fmt::format("{} is damaged: {}{}", process.who.file, process.damage.front(), more),
           "what is intact was used; --strict refuses it",
           {{"damages", number(static_cast<u64>(process.damage.size()))}, {"pid", static_cast<i64>(process.who.pid)}}});
    } else if (!process.who.ended) {
      found.push_back({"unfinished-file",
                       Severity::Warning,
                       "quality-notes",
                       fmt::format("the trace of {} has no end: it is still being written, or its sidecar was killed",
                                   name_of(process)),
                       "",
                       {{"pid", static_cast<i64>(process.who.pid)}}});
    }
  }
}

void died_inside_call(const LoadedTrace& trace, Findings& found) {
  for (const ProcessTrace& process : trace.processes) {
    if (process.in_flight.empty() || !process.who.ended) continue;
    const OpenCall* deepest = &process.in_flight.front();
    for (const OpenCall& open : process.in_flight) {
      if (open.tid == deepest->tid && open.depth > deepest->depth) deepest = &open;
    }
    const char* verb = process.who.died ? "died inside" : "ended while still inside";
    found.push_back({"call-in-flight",
                     process.who.died ? Severity::Problem : Severity::Hint,
                     "quality-notes",
                     fmt::format("{} {} {} (thread {})", name_of(process), verb, deepest->call, deepest->tid),
                     "",
                     {{"call", deepest->call},
                      {"tid", static_cast<i64>(deepest->tid)},
                      {"pid", static_cast<i64>(process.who.pid)},
                      {"open_calls", number(static_cast<u64>(process.in_flight.size()))}}});
  }
}

void no_cuda_call(const LoadedTrace& trace, Findings& found) {
  for (const ProcessTrace& process : trace.processes) {
    if (!process.damage.empty()) return;  // there may have been calls
    for (const CallFacts& call : process.calls) {
      if (call.calls) return;
    }
  }
  found.push_back({"no-cuda-call",
                   Severity::Problem,
                   "api",
                   "no CUDA call is in this trace",
                   "is this a CPU run, or was the recorded window empty? try: gputrace doctor",
                   {}});
}

void call_errors(const LoadedTrace& trace, Findings& found) {
  constexpr u16 kNotReady = 600;
  struct Group {
    u64 count = 0;
    std::string level;
  };
  std::map<std::pair<std::string, u16>, Group> errors;
  bool driver = false;
  for (const ProcessTrace& process : trace.processes) {
    for (const CallFacts& call : process.calls) {
      for (const auto& [result, count] : call.results) {
        if (result == kNotReady) continue;
        Group& group = errors[{call.name, result}];
        group.count += count;
        group.level = call.level;
        driver = driver || call.level == "driver";
      }
    }
  }
  for (const auto& [key, group] : errors) {
    // A runtime call passes on what the driver call within it said: said once.
    if (driver && group.level == "runtime") continue;
    found.push_back({"call-errors",
                     key.second == 2 ? Severity::Problem : Severity::Warning,
                     "api",
                     fmt::format("{} returned {} {} time{}", key.first, result_name(key.second), group.count,
                                 group.count == 1 ? "" : "s"),
                     "",
                     {{"call", key.first},
                      {"result", static_cast<i64>(key.second)},
                      {"name", result_name(key.second)},
                      {"count", number(group.count)}}});
  }
}

void synchronous_copies(const LoadedTrace& trace, Findings& found) {
  u64 count = 0, between = 0, bytes = 0, call_ns = 0;
  for (const ProcessTrace& process : trace.processes) {
    for (const CopyGroup& group : process.copies) {
      if (group.asynchronous || group.kind == TransferKind::Memset || group.kind == TransferKind::DtoD) continue;
      count += group.count;
      between += group.between_launches;
      bytes += group.bytes;
      call_ns += group.call_ns;
    }
  }
  if (between < kLoopTimes) return;
  const double wall = seconds(trace);
  const bool costly = static_cast<double>(call_ns) >= kCostlyShare * wall * 1e9;
  found.push_back({"synchronous-copies",
                   costly ? Severity::Warning : Severity::Hint,
                   "copies",
                   fmt::format("{} synchronous copies ({}), {} of them between launches, {:.0f} per second: the host "
                               "waits for each, {} in all",
                               count, human_bytes(bytes), between, per_second(count, wall),
                               human_nanos(static_cast<Nanos>(call_ns))),
                   "copy with cuMemcpyAsync (cudaMemcpyAsync, non_blocking=True) from pinned memory, and wait once",
                   {{"count", number(count)},
                    {"between_launches", number(between)},
                    {"bytes", number(bytes)},
                    {"api_ns", number(call_ns)},
                    {"per_second", per_second(count, wall)}}});
}

void allocation_in_loop(const LoadedTrace& trace, Findings& found) {
  for (const ProcessTrace& process : trace.processes) {
    const AllocationLoop& loop = process.allocation_loop;
    if (loop.between_launches < kLoopTimes) continue;
    u64 spent = 0;
    for (const CallFacts& call : process.calls) {
      if (call.level == "driver" &&
          (call.name.compare(0, 8, "cuMemAll") == 0 || call.name.compare(0, 9, "cuMemFree") == 0))
        spent += call.self_ns;
    }
    const double span = static_cast<double>(loop.last - loop.first) / 1e9;
    found.push_back({"allocation-in-loop",
                     Severity::Warning,
                     "memory",
                     fmt::format("{} allocates in its loop: {} allocations with launches between them, {:.0f} per "
                                 "second, {} in allocating and freeing",
                                 name_of(process), loop.between_launches, per_second(loop.between_launches, span),
                                 human_nanos(static_cast<Nanos>(spent))),
                     "allocate once before the loop, or use stream-ordered pools (cuMemAllocAsync, cudaMallocAsync)",
                     {{"between_launches", number(loop.between_launches)},
                      {"per_second", per_second(loop.between_launches, span)},
                      {"api_ns", number(spent)},
                      {"pid", static_cast<i64>(process.who.pid)}}});
  }
}

void pageable_async_copies(const LoadedTrace& trace, Findings& found) {
  u64 count = 0, bytes = 0, call_ns = 0;
  for (const ProcessTrace& process : trace.processes) {
    for (const CopyGroup& group : process.copies) {
      if (!group.asynchronous || group.memory != HostMemory::Pageable) continue;
      count += group.count;
      bytes += group.bytes;
      call_ns += group.call_ns;
    }
  }
  if (count < kLoopTimes && bytes < kPageableBytes) return;
  if (count == 0) return;
  found.push_back({"pageable-async-copies",
                   bytes >= kPageableBytes ? Severity::Warning : Severity::Hint,
                   "copies",
                   fmt::format("{} asynchronous copies ({}) are from or to pageable host memory: the driver stages "
                               "them, and they are not asynchronous",
                               count, human_bytes(bytes)),
                   "use pinned memory (cuMemHostAlloc, cudaHostAlloc, pin_memory=True)",
                   {{"count", number(count)}, {"bytes", number(bytes)}, {"api_ns", number(call_ns)}}});
}

void option_warnings(const LoadedTrace& trace, Findings& found) {
  std::vector<std::string> said;
  for (const ProcessTrace& process : trace.processes) {
    for (const std::string& warning : process.warnings) {
      if (std::find(said.begin(), said.end(), warning) != said.end()) continue;
      said.push_back(warning);
      found.push_back({"option", Severity::Warning, "quality-notes", warning, "", {}});
    }
  }
}

}  // namespace

std::vector<Finding> find_findings(const LoadedTrace& trace) {
  Findings found;
  for (const auto rule : {damaged_file, dropped_records, died_inside_call, no_cuda_call, call_errors,
                          synchronous_copies, allocation_in_loop, pageable_async_copies, option_warnings}) {
    rule(trace, found);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return found;
}

}  // namespace gputrace
